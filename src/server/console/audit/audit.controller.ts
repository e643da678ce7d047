import { Get, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { AUDIT_ACTIONS, type AuditAction } from '../../../audit/audit-event.entity.js';
import { ID } from '../../../values/identifier.js';
import { ClientDirectory } from '../clients/client-directory.js';
import { givenFields, type Given, isSearchable, momentOf, MOMENT_HINT, textOf } from '../fields/fields.js';
import { ConsoleRoutes } from '../frame/console-route.js';
import { sendConsolePage } from '../frame/frame.js';
import { MemberDirectory } from '../members/member-directory.js';
import { AUDIT_FIELDS, type AuditField, auditPage, type ShownAudit } from './audit-page.js';
import { type AuditCriteria, AuditSearch } from './audit-search.js';
import { namedIds, type Names } from './audit-words.js';

const PAGE_SIZE = 50;

/** Who did what. */
@ConsoleRoutes('ops/audit')
export class AuditController {
  constructor(
    private readonly audit: AuditSearch,
    private readonly clients: ClientDirectory,
    private readonly members: MemberDirectory,
  ) {}

  @Get()
  async list(
    @Query() input: Record<string, unknown>,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const given = givenFields(AUDIT_FIELDS, input);
    const cursor = textOf(input.before);
    const before = ID.test(cursor) ? cursor : null;
    const criteria = await this.criteriaOf(given);
    const faults = faultsOf(given, criteria);
    const isFaulty = Object.keys(faults).length > 0;
    const page = isFaulty ? null : await this.audit.page(criteria, before, PAGE_SIZE);
    const names = await this.namesOf(page?.events ?? []);
    const shown: ShownAudit = { given, faults, page, names, isFirst: before === null };
    sendConsolePage(request, reply, { title: 'Audit', section: 'audit', body: auditPage(shown) }, isFaulty ? 400 : 200);
  }

  private async criteriaOf({ actor, action, subject, since, until }: Given<AuditField>): Promise<AuditCriteria> {
    const now = Date.now();
    return {
      actor: actor === '' ? null : actor,
      action: isAction(action) ? action : null,
      subject: subject === '' ? null : await this.subjectOf(subject),
      since: since === '' ? null : momentOf(since, now),
      until: until === '' ? null : momentOf(until, now),
    };
  }

  /** A subject as it is recorded; or the name or id of a client, or the id of a webhook. */
  private async subjectOf(text: string): Promise<string> {
    if (text.includes(':')) return text;
    const clients = await this.clients.search(text, 2);
    if (clients.length === 1 && clients[0]) return `client:${clients[0].id}`;
    return `webhook:${text}`;
  }

  private async namesOf(events: Parameters<typeof namedIds>[0]): Promise<Names> {
    const ids = namedIds(events);
    const [clients, members] = await Promise.all([this.clients.names(ids.clients), this.members.names(ids.members)]);
    return { clients, members };
  }
}

function faultsOf(given: Given<AuditField>, criteria: AuditCriteria): ShownAudit['faults'] {
  const { since, until, action } = criteria;
  const faults: [AuditField, boolean, string][] = [
    ['actor', !isSearchable(given.actor), 'No actor has such a name.'],
    ['action', given.action !== '' && action === null, 'Choose one of the list.'],
    ['subject', !isSearchable(given.subject), 'No subject has such a name.'],
    ['since', given.since !== '' && since === null, `Give ${MOMENT_HINT}.`],
    ['until', given.until !== '' && until === null, `Give ${MOMENT_HINT}.`],
    ['until', since !== null && until !== null && until <= since, 'Must be later than the beginning.'],
  ];
  return Object.fromEntries(faults.filter(([, isFault]) => isFault).map(([field, , message]) => [field, message]));
}

const isAction = (text: string): text is AuditAction => (AUDIT_ACTIONS as readonly string[]).includes(text);
