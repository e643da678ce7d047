import { AUDIT_ACTIONS, type AuditAction, type AuditDetail } from '../../../audit/audit-event.entity.js';
import { html } from '../../../http/html.js';
import { ID } from '../../../values/identifier.js';
import {
  choice,
  hrefOf,
  moment,
  MOMENT_HINT,
  readFilter,
  searchField,
  type Texts,
} from '../../../http/pages/fields.js';
import { listPage } from '../../../http/pages/list.js';
import { type Column, time } from '../../../http/pages/parts.js';
import { pagesWith } from '../../../http/pages/site.js';
import { PORTAL_PATH } from '../../../portal/portal.js';
import { CachedQueries, SHORT_TIMEOUT_MS } from '../../health/cached-query.js';
import { searchClients } from '../clients/clients-data.js';
import { clientLink, memberLink, webhookLink } from '../frame/links.js';
import { auditSearch, kindAndId, type ListedEvent } from './audit-search.js';

const AUDIT_PATH = '/ops/audit';

const ACTIONS: Partial<Record<AuditAction, string>> = {
  'client.notify-url-set': 'set a Notify URL',
  'client.contact-set': 'set a contact',
  'client.tokens-revoked': 'revoked all tokens of a client',
  'client.certified': 'ran a certification',
  'client.erasure-started': 'began to erase a client',
  'client.authentication-failed': 'failed to authenticate as a client',
  'client.application-set': 'set grants and redirect URIs',
  'secret.rotated': 'issued a new secret',
  'secret.rotation-finished': 'ended an old secret',
  'secret.replaced': 'replaced a new secret',
  'keys.rotated': 'changed the master key',
  'webhook.resent': 'sent a notification again',
  'resend.started': 'asked to send many notifications again',
  'resend.stopped': 'stopped sending many notifications again',
  'alarm.acknowledged': 'acknowledged that a receiver fails',
  'member.password-set': 'set the password of a member',
  'member.erasure-started': 'began to erase a member',
  'member.signed-in': 'signed in as a member',
  'member.authentication-failed': 'failed to sign in as a member',
  'consent.given': 'let a client act for them',
  'consent.declined': 'did not let a client act for them',
  'consent.withdrawn': 'withdrew the consent to a client',
  'code.replayed': 'used an authorisation code twice',
  'operator.authentication-failed': 'failed to sign in at these pages',
  'internal.authentication-failed': 'failed to authenticate as an order service',
  'portal.link-created': 'made a link to the portal',
  'portal.link-withdrawn': 'withdrew a link to the portal',
  'portal.signed-in': 'signed in at the portal',
  'list.exported': 'saved a list as a file',
};

/** What somebody did, in words, such as `created a client`. */
const actionWords = (action: AuditAction) =>
  ACTIONS[action] ?? action.replace(/^(client|member|queue)\.(\w+)$/, '$2 a $1').replace(/[.-]/g, ' ');

const CHOICES = Object.fromEntries(AUDIT_ACTIONS.map((action) => [action, `${action}: ${actionWords(action)}`]));

const FIELDS = {
  actor: searchField('Who'),
  action: choice<AuditAction>('Action', CHOICES),
  subject: searchField('To what'),
  since: moment('Since'),
  until: moment('Before'),
};

export const auditPages = pagesWith([], ({ dataSource, manager, options }) => {
  const audit = auditSearch(dataSource, options);

  /** Accepts a subject as it is recorded, the name or id of a client, or the id of a webhook. */
  async function filterOf(input: Texts) {
    const filter = readFilter(FIELDS, input);
    const { subject } = filter.values;
    if (!subject || subject.includes(':')) return filter;
    const [client, another] = await searchClients(manager, subject, 2);
    if (another) filter.faults.subject = 'Several clients have such a name. Give the id of one.';
    // An erased client has only its id.
    const kind = !client && ID.test(subject) ? 'webhook' : 'client';
    filter.values.subject = `${kind}:${client?.id ?? subject}`;
    return filter;
  }

  const counts = new CachedQueries(audit.count, SHORT_TIMEOUT_MS);

  return [
    listPage({
      path: AUDIT_PATH,
      title: 'Audit',
      noun: 'event',
      fields: FIELDS,
      filter: filterOf,
      hint: () => HINT,
      read: ({ values }, part) => audit.find(values, part),
      count: ({ values }) => counts.get(values),
      columns: {
        When: { time: 'createdAt' },
        Who: { value: 'actor', cell: actorLink },
        'Did what': ACTION,
        'To what': { value: 'subject', cell: subjectLink },
        Details: { value: ({ detail }) => JSON.stringify(detail), cell: detailWords },
        From: 'address',
      },
      nothing: [NOTHING, NOTHING],
    }),
    listPage({
      path: `${PORTAL_PATH}/record`,
      title: 'Record',
      noun: 'event',
      fields: {},
      hint: () => html`<p class="hint">Who signed in here, and what was done here or by the API.</p>`,
      read: (_, part, { actor }) => audit.find({ actor: actor.name }, part),
      count: null,
      columns: { When: { time: 'createdAt' }, 'Did what': ACTION, 'To what': 'subject', From: 'address' },
      nothing: ['Sign-ins and changes will be listed here.', ''],
    }),
  ];
});

const ACTION: Column<ListedEvent> = { value: 'action', cell: ({ action }) => actionWords(action) };

const HINT = html`<p class="hint">
  Who: an actor like operator:alice, or a kind like operator, client, command-line or internal. To what: a subject like
  client:ID or webhook:ID, or the name or id of a client. A time is ${MOMENT_HINT}.
</p>`;

const NOTHING =
  'No event matches. Every change of clients, members, notifications, queues and operators is recorded here.';

function actorLink({ actor, names }: ListedEvent) {
  const name = names.get(actor);
  const text = name === undefined ? actor : `${name} (${kindAndId(actor)[0]})`;
  return html`<a href="${hrefOf(AUDIT_PATH, { actor })}" title="${actor}">${text}</a>`;
}

function subjectLink({ subject, names }: ListedEvent) {
  if (subject === null) return null;
  const [kind, id] = kindAndId(subject);
  const link = linkOf(kind, id, names);
  return link === null ? subject : html`<span class="dim">${kind}</span> ${link}`;
}

/** An erased client or member has neither a name nor a page. */
function linkOf(kind: string, id: string, names: ListedEvent['names']) {
  const name = names.get(`${kind}:${id}`);
  if (name !== undefined) return (kind === 'client' ? clientLink : memberLink)({ id, name });
  if (kind === 'webhook' && ID.test(id)) return webhookLink(id);
  if (kind === 'resend') return html`<a href="/ops/resends/${encodeURIComponent(id)}">progress</a>`;
  if (kind === 'request' && ID.test(id)) return html`<a href="/ops/resends/${id}">a request for many</a>`;
  if (kind === 'queue')
    return html`<a href="/ops/queues${id !== 'all' && `/queue/${encodeURIComponent(id)}`}">${id}</a>`;
  return kind === 'operator' ? html`<a href="/ops/operators">${id}</a>` : null;
}

/** The details of an event that have a value, with links. */
function detailWords({ detail, names }: ListedEvent) {
  const set = Object.entries(detail).filter(
    ([name, value]) => value !== null && value !== '' && (value || name !== 'imported'),
  );
  return html`${set.map(([name, value]) => html`<div><span class="dim">${WORDS[name] ?? words(name)}:</span> ${valueOf(name, value, names)}</div>`)}`;
}

const WORDS: Record<string, string> = {
  from: 'before',
  to: 'now',
  resentAs: 'as',
  request: 'part of',
  blocked: 'refused by the limit',
  oldValidUntil: 'old secret valid until',
};

/** `tokensRevoked` as `tokens revoked`. */
const words = (name: string) => name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

/** What the details are the ids of. */
const KINDS: Record<string, string> = { client: 'client', resentAs: 'webhook', request: 'request' };

function valueOf(name: string, value: AuditDetail[string], names: ListedEvent['names']) {
  if (name === 'oldValidUntil') return time(String(value));
  const text = typeof value === 'boolean' ? (value ? 'yes' : 'no') : String(value);
  return linkOf(KINDS[name] ?? '', text, names) ?? text;
}
