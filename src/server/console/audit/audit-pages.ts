import { Injectable } from '@nestjs/common';
import { AUDIT_ACTIONS, type AuditAction, type AuditEvent } from '../../../audit/audit-event.entity.js';
import { type Html, html } from '../../../http/html.js';
import { ID, timeOfId } from '../../../values/identifier.js';
import { ClientDirectory } from '../clients/client-directory.js';
import {
  type Given,
  givenFields,
  hrefOf,
  isSearchable,
  MOMENT_HINT,
  momentOf,
  selectField,
  textField,
  textOf,
} from '../fields/fields.js';
import type { Page, View, Visit } from '../frame/pages.js';
import { notice, pager, table, time } from '../frame/parts.js';
import { MemberDirectory } from '../members/member-directory.js';
import { type AuditCriteria, AuditSearch } from './audit-search.js';
import { actionWords, actorLink, AUDIT_PATH, detailWords, namedIds, type Names, subjectLink } from './audit-words.js';

const PAGE_SIZE = 50;
const FIELDS = ['actor', 'action', 'subject', 'since', 'until'] as const;
type Field = (typeof FIELDS)[number];
type Faults = Partial<Record<Field, string>>;

/** Who did what, the newest first. */
@Injectable()
export class AuditPages {
  constructor(
    private readonly audit: AuditSearch,
    private readonly clients: ClientDirectory,
    private readonly members: MemberDirectory,
  ) {}

  readonly pages: Page[] = [{ path: AUDIT_PATH, show: (visit) => this.list(visit) }];

  private async list({ query }: Visit): Promise<View> {
    const given = givenFields(FIELDS, query);
    const cursor = textOf(query.before);
    const before = ID.test(cursor) ? cursor : null;
    const criteria = await this.criteriaOf(given);
    const faults = faultsOf(given, criteria);
    const isFaulty = Object.keys(faults).length > 0;
    const body = html`${filterForm(given, faults)} ${isFaulty ? null : await this.events(given, criteria, before)}`;
    return { title: 'Audit', section: 'audit', body, status: isFaulty ? 400 : 200 };
  }

  private async events(given: Given<Field>, criteria: AuditCriteria, before: string | null): Promise<Html> {
    const { events, next, isCut } = await this.audit.page(criteria, before, PAGE_SIZE);
    const ids = namedIds(events);
    const [clients, members] = await Promise.all([this.clients.names(ids.clients), this.members.names(ids.members)]);
    const list = isCut && events.length === 0 ? null : table(columns({ clients, members }), events, NOTHING);
    return html`${list} ${isCut && next !== null ? cut(next) : null}
    ${pager(
      before === null ? null : [hrefOf(AUDIT_PATH, given), 'Newest'],
      next === null ? null : [hrefOf(AUDIT_PATH, { ...given, before: next }), isCut ? 'Search older ones' : 'Older'],
    )}`;
  }

  private async criteriaOf({ actor, action, subject, since, until }: Given<Field>): Promise<AuditCriteria> {
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
}

const columns = (names: Names) => [
  { name: 'When', cell: ({ createdAt }: AuditEvent) => time(createdAt) },
  { name: 'Who', cell: (event: AuditEvent) => actorLink(event, names) },
  { name: 'Did what', cell: ({ action }: AuditEvent) => actionWords(action) },
  { name: 'To what', cell: ({ subject }: AuditEvent) => subject && subjectLink(subject, names) },
  { name: 'Details', cell: ({ detail }: AuditEvent) => detailWords(detail, names) },
  { name: 'From', cell: ({ address }: AuditEvent) => address },
];

function filterForm(given: Given<Field>, faults: Faults): Html {
  const field = (name: Field, label: string) => textField({ name, label, value: given[name], fault: faults[name] });
  const actions = AUDIT_ACTIONS.map((action): [string, string] => [action, `${action}: ${actionWords(action)}`]);
  const action = { name: 'action', label: 'Action', value: given.action, fault: faults.action };
  return html`<form class="filter" method="get" action="${AUDIT_PATH}">
      ${field('actor', 'Who')} ${selectField(action, [['', 'any'], ...actions])} ${field('subject', 'To what')}
      ${field('since', 'Since')} ${field('until', 'Before')} <button>Filter</button>
      <a class="button" href="${AUDIT_PATH}">Clear</a>
    </form>
    <p class="hint">
      Who: an actor like operator:alice, or a kind like operator, client, command-line or internal. To what: a subject
      like client:ID or webhook:ID, or the name or id of a client. A time is ${MOMENT_HINT}.
    </p>`;
}

const NOTHING =
  'No event fits. Every change of clients, members, notifications, queues and operators is recorded here.';

const cut = (next: string): Html =>
  notice(
    'warning',
    html`The search has ended at the events of ${time(timeOfId(next))}. Older ones may fit; go on with “Search older
    ones”, or give a subject or a time.`,
  );

function faultsOf(given: Given<Field>, criteria: AuditCriteria): Faults {
  const { since, until, action } = criteria;
  const faults: [Field, boolean, string][] = [
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
