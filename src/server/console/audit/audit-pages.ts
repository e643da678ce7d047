import { Injectable } from '@nestjs/common';
import {
  AUDIT_ACTIONS,
  type AuditAction,
  type AuditDetail,
  type AuditEvent,
} from '../../../audit/audit-event.entity.js';
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
} from '../../../http/pages/fields.js';
import type { Page, View, Visit } from '../../../http/pages/site.js';
import { type Columns, notice, pager, table, time } from '../../../http/pages/parts.js';
import { clientLink, webhookLink } from '../frame/links.js';
import { type AuditCriteria, AuditSearch, kindAndId, type Names } from './audit-search.js';

const AUDIT_PATH = '/ops/audit';
const PAGE_SIZE = 50;

const ACTIONS: Partial<Record<AuditAction, string>> = {
  'client.created': 'created a client',
  'client.renamed': 'renamed a client',
  'client.disabled': 'disabled a client',
  'client.enabled': 'enabled a client',
  'client.notify-url-set': 'set a Notify URL',
  'client.contact-set': 'set a contact',
  'client.tokens-revoked': 'revoked all tokens of a client',
  'client.erasure-started': 'began to erase a client',
  'client.erased': 'erased a client',
  'client.authentication-failed': 'failed to authenticate as a client',
  'client.application-set': 'set grants and redirect URIs',
  'secret.rotated': 'issued a new secret',
  'secret.rotation-finished': 'ended an old secret',
  'keys.rotated': 'changed the master key',
  'webhook.resent': 'sent a notification again',
  'resend.started': 'asked to send many notifications again',
  'resend.stopped': 'stopped sending many notifications again',
  'alarm.acknowledged': 'acknowledged that a receiver fails',
  'member.created': 'created a member',
  'member.disabled': 'disabled a member',
  'member.enabled': 'enabled a member',
  'member.password-set': 'set the password of a member',
  'member.erasure-started': 'began to erase a member',
  'member.erased': 'erased a member',
  'member.signed-in': 'signed in as a member',
  'member.authentication-failed': 'failed to sign in as a member',
  'consent.given': 'let a client act for them',
  'consent.declined': 'did not let a client act for them',
  'consent.withdrawn': 'withdrew the consent to a client',
  'code.replayed': 'used an authorisation code twice',
  'queue.paused': 'paused a queue',
  'queue.resumed': 'resumed a queue',
  'queue.changed': 'changed a queue',
  'operator.authentication-failed': 'failed to sign in at these pages',
  'internal.authentication-failed': 'failed to authenticate as an order service',
};

/** What somebody did, in words. */
const actionWords = (action: AuditAction): string => ACTIONS[action] ?? action.replace(/[.-]/g, ' ');

const searchable = (label: string, fault: string): FilterField<string> => ({
  label,
  read: (text) => (isSearchable(text) ? text : null),
  fault,
});

const CHOICES = Object.fromEntries(AUDIT_ACTIONS.map((action) => [action, `${action}: ${actionWords(action)}`]));

const FIELDS: FilterFields<AuditCriteria> = {
  actor: searchable('Who', 'No actor has such a name.'),
  action: choice('Action', CHOICES as Record<AuditAction, string>),
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

/** A link to all that the actor did. */
const actorLink = ({ actor }: AuditEvent, names: Names): Html => {
  const name = names.get(actor);
  const text = name === undefined ? actor : `${name} (${kindAndId(actor)[0]})`;
  return html`<a href="${hrefOf(AUDIT_PATH, { actor })}" title="${actor}">${text}</a>`;
};

/** A link to what was changed. */
function subjectLink(subject: string, names: Names): Html {
  const [kind, id] = kindAndId(subject);
  const link = linkOf(kind, id, names.get(subject));
  return link === null ? html`${subject}` : html`<span class="dim">${kind}</span> ${link}`;
}

/** `name`: of a client or a member. One who is erased has no page. */
function linkOf(kind: string, id: string, name: string | undefined): Html | null {
  if (name !== undefined) return kind === 'client' ? clientLink({ id, name }) : pathLink(`/ops/members/${id}`, name);
  if (kind === 'webhook' && ID.test(id)) return webhookLink(id);
  if (kind === 'resend') return pathLink(`/ops/resends/${encodeURIComponent(id)}`, 'progress');
  if (kind === 'queue')
    return pathLink(id === 'all' ? '/ops/queues' : `/ops/queues/queue/${encodeURIComponent(id)}`, id);
  return kind === 'operator' ? pathLink('/ops/operators', id) : null;
}

const pathLink = (path: string, text: string): Html => html`<a href="${path}">${text}</a>`;

/** The facts of an event, with links. What is not set is left out. */
function detailWords(detail: AuditDetail, names: Names): Html {
  const set = Object.entries(detail).filter(([, value]) => value !== null && value !== '');
  return html`${set.map(([name, value]) => html`<div><span class="dim">${WORDS[name] ?? words(name)}:</span> ${valueOf(name, value, names)}</div>`)}`;
}

const WORDS: Record<string, string> = {
  resentAs: 'as',
  request: 'part of',
  blocked: 'refused by the limit',
  oldValidUntil: 'old secret valid until',
};

/** `tokensRevoked` as `tokens revoked`. */
const words = (name: string): string => name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

function valueOf(name: string, value: AuditDetail[string], names: Names): Html {
  const text = typeof value === 'boolean' ? (value ? 'yes' : 'no') : String(value);
  const client = names.get(`${name}:${text}`);
  if (name === 'client' && client !== undefined) return clientLink({ id: text, name: client });
  if (name === 'resentAs' && ID.test(text)) return webhookLink(text);
  if (name === 'request' && ID.test(text)) return pathLink(`/ops/resends/${text}`, 'a request for many');
  return html`${text}`;
}
