import { AUDIT_ACTIONS } from '../../../audit/audit-event.entity.js';
import { type Html, html } from '../../../http/html.js';
import { timeOfId } from '../../../values/identifier.js';
import { type Given, hrefOf, MOMENT_HINT, selectField, textField } from '../fields/fields.js';
import { emptyState, notice, table, time } from '../frame/parts.js';
import type { AuditPage } from './audit-search.js';
import { actionWords, actorLink, AUDIT_PATH, detailWords, type Names, subjectLink } from './audit-words.js';

export const AUDIT_FIELDS = ['actor', 'action', 'subject', 'since', 'until'] as const;
export type AuditField = (typeof AUDIT_FIELDS)[number];

export interface ShownAudit {
  given: Given<AuditField>;
  faults: Partial<Record<AuditField, string>>;
  /** Null if the filter has a fault. */
  page: AuditPage | null;
  names: Names;
  isFirst: boolean;
}

const COLUMNS = [
  { name: 'When' },
  { name: 'Who' },
  { name: 'Did what' },
  { name: 'To what' },
  { name: 'Details' },
  { name: 'From' },
];

/** Who did what, the newest first. */
export function auditPage(shown: ShownAudit): Html {
  return html`${filterForm(shown)} ${shown.page && events({ ...shown, page: shown.page })}`;
}

function filterForm({ given, faults }: ShownAudit): Html {
  const field = (name: AuditField, label: string, hint?: string) =>
    textField({ name, label, value: given[name], fault: faults[name], ...(hint !== undefined && { hint }) });
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

function events({
  given,
  page: { events: found, next, isCut },
  names,
  isFirst,
}: ShownAudit & { page: AuditPage }): Html {
  const rows = found.map((event) => [
    time(event.createdAt),
    actorLink(event, names),
    html`${actionWords(event.action)}`,
    subjectLink(event.subject, names),
    detailWords(event.detail, names),
    html`${event.address ?? html`<span class="dim">–</span>`}`,
  ]);
  const list = rows.length > 0 ? table(COLUMNS, rows) : isCut ? null : emptyState(NOTHING);
  return html`${list} ${isCut && next !== null ? cut(next) : null} ${pages(given, next, { isFirst, isCut })}`;
}

const NOTHING =
  'No event fits. Every change of clients, members, notifications, queues and operators is recorded here.';

const cut = (next: string): Html =>
  notice(
    'warning',
    html`The search has ended at the events of ${time(timeOfId(next))}. Older ones may fit; go on with “Search older
    ones”, or give a subject or a time.`,
  );

function pages(
  given: Given<AuditField>,
  next: string | null,
  { isFirst, isCut }: { isFirst: boolean; isCut: boolean },
): Html | null {
  if (isFirst && next === null) return null;
  const older = next === null ? null : hrefOf(AUDIT_PATH, { ...given, before: next });
  return html`<nav class="pager" aria-label="Pages">
    ${isFirst ? null : html`<a class="button" href="${hrefOf(AUDIT_PATH, given)}">Newest</a>`}
    ${older === null ? null : html`<a class="button" rel="next" href="${older}">${isCut ? 'Search older ones' : 'Older'}</a>`}
  </nav>`;
}
