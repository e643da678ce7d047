import { Injectable } from '@nestjs/common';
import { AUDIT_ACTIONS, type AuditAction, type AuditEvent } from '../../../audit/audit-event.entity.js';
import { type Html, html } from '../../../http/html.js';
import { ID, timeOfId } from '../../../values/identifier.js';
import { ClientDirectory } from '../clients/client-directory.js';
import {
  choice,
  type Filter,
  type FilterField,
  type FilterFields,
  filterForm,
  hasFault,
  hrefOf,
  isSearchable,
  moment,
  MOMENT_HINT,
  readFilter,
} from '../frame/fields.js';
import type { Page, View, Visit } from '../frame/pages.js';
import { type Columns, notice, pager, table, time } from '../frame/parts.js';
import { type AuditCriteria, AuditSearch } from './audit-search.js';
import { actionWords, actorLink, AUDIT_PATH, detailWords, type Names, subjectLink } from './audit-words.js';

const PAGE_SIZE = 50;

const searchable = (label: string, fault: string): FilterField<string> => ({
  label,
  read: (text) => (isSearchable(text) ? text : null),
  fault,
});

const ACTIONS = Object.fromEntries(AUDIT_ACTIONS.map((action) => [action, `${action}: ${actionWords(action)}`]));

const FIELDS: FilterFields<AuditCriteria> = {
  actor: searchable('Who', 'No actor has such a name.'),
  action: choice('Action', ACTIONS as Record<AuditAction, string>),
  subject: searchable('To what', 'No subject has such a name.'),
  since: moment('Since'),
  until: moment('Before'),
};

/** Who did what, the newest first. */
@Injectable()
export class AuditPages {
  constructor(
    private readonly audit: AuditSearch,
    private readonly clients: ClientDirectory,
  ) {}

  readonly pages: Page[] = [{ path: AUDIT_PATH, show: (visit) => this.list(visit) }];

  private async list({ query }: Visit): Promise<View> {
    const filter = readFilter(FIELDS, query, Date.now());
    const isFaulty = hasFault(filter);
    const { before = '' } = query;
    const body = html`${filterForm(AUDIT_PATH, FIELDS, filter)} ${HINT}
    ${!isFaulty && (await this.events(filter, ID.test(before) ? before : ''))}`;
    return { title: 'Audit', section: 'audit', body, status: isFaulty ? 400 : 200 };
  }

  private async events({ given, values }: Filter<AuditCriteria>, before: string): Promise<Html> {
    const subject = values.subject && (await this.subjectOf(values.subject));
    const { events, next, isCut } = await this.audit.page({ ...values, subject }, before || null, PAGE_SIZE);
    const names = await this.audit.names(events);
    return html`${(events.length > 0 || !isCut) && table(columns(names), events, NOTHING)} ${isCut && next && cut(next)}
    ${pager((before) => hrefOf(AUDIT_PATH, { ...given, before }), before, next, [
      'Newest',
      isCut ? 'Search older ones' : 'Older',
    ])}`;
  }

  /** A subject as it is recorded; or the name or id of a client, or the id of a webhook. */
  private async subjectOf(text: string): Promise<string> {
    if (text.includes(':')) return text;
    const [client, other] = await this.clients.search(text, 2);
    return client && !other ? `client:${client.id}` : `webhook:${text}`;
  }
}

const columns = (names: Names): Columns<AuditEvent> => ({
  When: ({ createdAt }) => time(createdAt),
  Who: (event) => actorLink(event, names),
  'Did what': ({ action }) => actionWords(action),
  'To what': ({ subject }) => subject && subjectLink(subject, names),
  Details: ({ detail }) => detailWords(detail, names),
  From: ({ address }) => address,
});

const HINT = html`<p class="hint">
  Who: an actor like operator:alice, or a kind like operator, client, command-line or internal. To what: a subject like
  client:ID or webhook:ID, or the name or id of a client. A time is ${MOMENT_HINT}.
</p>`;

const NOTHING =
  'No event fits. Every change of clients, members, notifications, queues and operators is recorded here.';

const cut = (next: string): Html =>
  notice(
    'warning',
    html`The search has ended at the events of ${time(timeOfId(next))}. Older ones may fit; go on with “Search older
    ones”, or give a subject or a time.`,
  );
