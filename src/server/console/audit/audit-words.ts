import type { AuditAction, AuditDetail, AuditEvent } from '../../../audit/audit-event.entity.js';
import { type Html, html } from '../../../http/html.js';
import { ID } from '../../../values/identifier.js';
import { hrefOf } from '../frame/fields.js';
import { clientLink, webhookLink } from '../frame/parts.js';

export const AUDIT_PATH = '/ops/audit';

/** The names of clients and members, by their ids. */
export interface Names {
  clients: Map<string, string>;
  members: Map<string, string>;
}

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
export const actionWords = (action: AuditAction): string => ACTIONS[action] ?? action.replace(/[.-]/g, ' ');

/** A link to all that the actor did. */
export const actorLink = ({ actor }: AuditEvent, { clients, members }: Names): Html => {
  const [kind = '', id = ''] = split(actor);
  const name = (kind === 'client' ? clients : kind === 'owner' ? members : null)?.get(id);
  const text = name === undefined ? actor : `${name} (${kind})`;
  return html`<a href="${hrefOf(AUDIT_PATH, { actor })}" title="${actor}">${text}</a>`;
};

/** A link to what was changed. */
export function subjectLink(subject: string, names: Names): Html {
  const [kind = '', id = ''] = split(subject);
  const link = linkOf(kind, id, names);
  return link === null ? html`${subject}` : html`<span class="dim">${kind}</span> ${link}`;
}

function linkOf(kind: string, id: string, { clients, members }: Names): Html | null {
  // An erased client has no page.
  if (kind === 'client') return clients.has(id) ? clientLink({ id, name: clients.get(id) ?? '' }) : null;
  if (kind === 'member') return members.has(id) ? pathLink(`/ops/members/${id}`, members.get(id) ?? id) : null;
  if (kind === 'webhook' && ID.test(id)) return webhookLink(id);
  if (kind === 'resend') return pathLink(`/ops/resends/${encodeURIComponent(id)}`, 'progress');
  if (kind === 'queue')
    return pathLink(id === 'all' ? '/ops/queues' : `/ops/queues/queue/${encodeURIComponent(id)}`, id);
  return kind === 'operator' ? pathLink('/ops/operators', id) : null;
}

const pathLink = (path: string, text: string): Html => html`<a href="${path}">${text}</a>`;

/** The facts of an event, with links. What is not set is left out. */
export function detailWords(detail: AuditDetail, names: Names): Html {
  const set = Object.entries(detail).filter(([, value]) => value !== null && value !== '');
  return html`${set.map(([name, value]) => html`<div><span class="dim">${WORDS[name] ?? words(name)}:</span> ${valueOf(name, value, names)}</div>`)}`;
}

const WORDS: Record<string, string> = {
  resentAs: 'as',
  requestId: 'request id',
  request: 'part of',
  isSet: 'is set',
  failed: 'failed',
  blocked: 'refused by the limit',
  oldValidUntil: 'old secret valid until',
};

/** `tokensRevoked` as `tokens revoked`. */
const words = (name: string): string => name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

function valueOf(name: string, value: AuditDetail[string], { clients }: Names): Html {
  const text = typeof value === 'boolean' ? (value ? 'yes' : 'no') : String(value);
  if (name === 'client' && clients.has(text)) return clientLink({ id: text, name: clients.get(text) ?? '' });
  if (name === 'resentAs' && ID.test(text)) return webhookLink(text);
  if (name === 'request' && ID.test(text)) return pathLink(`/ops/resends/${text}`, 'a request for many');
  return html`${text}`;
}

/** The ids of clients and members that events name. */
export function namedIds(events: AuditEvent[]): { clients: string[]; members: string[] } {
  const named = events.flatMap(({ actor, subject, detail }) => [
    actor,
    subject ?? '',
    `client:${String(detail.client)}`,
  ]);
  const of = (...kinds: string[]): string[] => {
    const ids = named.map(split).flatMap(([kind = '', id = '']) => (kinds.includes(kind) ? [id] : []));
    return [...new Set(ids)];
  };
  return { clients: of('client'), members: of('member', 'owner') };
}

/** The id may contain a colon itself. */
function split(text: string): [kind: string, id: string] | [] {
  const colon = text.indexOf(':');
  return colon < 0 ? [] : [text.slice(0, colon), text.slice(colon + 1)];
}
