import type { FastifyRequest } from 'fastify';
import { type Client, MAX_CLIENT_NAME_LENGTH } from '../../../clients/client.entity.js';
import { type Html, html } from '../../../http/html.js';
import { MAX_EMAIL_LENGTH } from '../../../values/email-address.js';
import { timeOfId } from '../../../values/identifier.js';
import { NOTIFY_URL_MAX_LENGTH } from '../../../values/urls/notify-url.js';
import { hrefOf, textField } from '../fields/fields.js';
import { postForm } from '../frame/form.js';
import { mayChange } from '../frame/frame.js';
import {
  clientLink,
  copyButton,
  emptyState,
  facts,
  notice,
  receiverLink,
  shortId,
  statusBadge,
  table,
  time,
} from '../frame/parts.js';
import type { ClientPage } from './client-directory.js';
import { applicationFieldset, clientPath } from './client-forms.js';
import type { ClientFacts } from './client-facts.js';
import type { NewClientFaults } from './new-clients.js';

export const CLIENTS_PATH = '/ops/clients';

export interface ClientsPage {
  query: string;
  page: ClientPage;
  facts: Map<string, ClientFacts>;
  isFirst: boolean;
}

const COLUMNS = [
  { name: 'Client' },
  { name: 'Id' },
  { name: 'State' },
  { name: 'Receiver' },
  { name: 'Last notification' },
  { name: 'Created' },
];

/** All clients by name, with what needs attention. */
export function clientsPage(request: FastifyRequest, { query, page, facts, isFirst }: ClientsPage): Html {
  const { clients, next } = page;
  const nothing =
    query === '' ? 'Each integrator gets a client. Create the first one.' : 'No client has this id or name.';
  return html`<form class="filter" method="get" action="${CLIENTS_PATH}">
      ${textField({ name: 'q', label: 'Name or id', value: query })} <button>Search</button>
    </form>
    ${mayChange(request) ? html`<p class="actions"><a class="button primary" href="${CLIENTS_PATH}/new">New client</a></p>` : null}
    ${
      clients.length === 0
        ? emptyState(nothing)
        : table(
            COLUMNS,
            clients.map((one) => row(one, facts.get(one.id))),
          )
    }
    ${
      isFirst && next === null
        ? null
        : html`<nav class="pager" aria-label="Pages">
            ${isFirst ? null : html`<a class="button" href="${hrefOf(CLIENTS_PATH, { q: query })}">First</a>`}
            ${next === null ? null : html`<a class="button" rel="next" href="${hrefOf(CLIENTS_PATH, { q: query, after: next })}">Next</a>`}
          </nav>`
    }`;
}

function row({ id, name, notifyUrl, createdAt, disabledAt }: Client, known: ClientFacts | undefined): Html[] {
  const since = known?.failingSince ?? null;
  const failing = since === null ? null : html` ${statusBadge('failing')} since ${time(since)}`;
  const last = known?.lastWebhookId ?? null;
  return [
    clientLink({ id, name }),
    shortId(id),
    html`${disabledAt === null ? statusBadge('active') : statusBadge('disabled')}${failing}`,
    notifyUrl === null ? html`<span class="dim">no Notify URL</span>` : receiverLink(new URL(notifyUrl).host),
    time(last === null ? null : timeOfId(last)),
    time(createdAt),
  ];
}

const DEFAULT_GRANTS = ['client_credentials', 'refresh_token'];

/** The form for a new client, empty or with what was refused. */
export function newClientPage(request: FastifyRequest, fields: Record<string, string>, faults: NewClientFaults): Html {
  const isFirst = Object.keys(fields).length === 0;
  const shown = (name: keyof NewClientFaults) => ({ name, value: fields[name] ?? '', fault: faults[name] });
  const grants = isFirst
    ? DEFAULT_GRANTS
    : Object.keys(fields).flatMap((name) => (name.startsWith('grant.') ? [name.slice('grant.'.length)] : []));
  const body = html`${textField({
      ...shown('name'),
      label: 'Name',
      hint: 'Only people see it.',
      maxLength: MAX_CLIENT_NAME_LENGTH,
      isRequired: true,
    })}
    ${textField({
      ...shown('notifyUrl'),
      label: 'Notify URL',
      type: 'url',
      hint: 'Where notifications go whose order has no URL of its own. It can be set later.',
      maxLength: NOTIFY_URL_MAX_LENGTH,
    })}
    ${textField({
      ...shown('contact'),
      label: 'Contact',
      type: 'email',
      hint: 'Is told by e-mail when a Notify URL fails.',
      maxLength: MAX_EMAIL_LENGTH,
    })}
    <details ${isFirst && faults.redirectUris === undefined ? null : html`open`}>
      <summary>Grants and redirect URIs</summary>
      ${applicationFieldset(shown('redirectUris'), grants, fields.isTrusted === 'yes')}
    </details>`;
  const form = postForm(request, { action: CLIENTS_PATH, body, button: 'Create the client', kind: 'primary' });
  return html`${form ?? notice('bad', 'A viewer cannot create clients.')}`;
}

export interface IssuedSecret {
  client: Client;
  secret: string;
  /** Of a new client: commands for its integrator. */
  quickStart: string | null;
  /** Of a rotation: until when the old secret is valid, in milliseconds since 1970. */
  oldValidUntil: number | null;
}

/** The only page that ever shows a secret. */
export function issuedPage({ client, secret, quickStart, oldValidUntil }: IssuedSecret): Html {
  const copied = (text: string): Html => html`<code>${text}</code> ${copyButton(text)}`;
  return html`${notice('warning', 'Copy the secret now. It is not shown again; if it is lost, issue a new one.')}
    <section class="card">
      ${facts([
        ['Client', clientLink(client)],
        ['Client id', copied(client.id)],
        ['Client secret', copied(secret)],
        [
          'Old secret',
          oldValidUntil === null
            ? null
            : html`valid until ${new Date(oldValidUntil).toISOString()} (${time(oldValidUntil)})`,
        ],
      ])}
    </section>
    ${
      quickStart === null
        ? null
        : html`<h2>Quick start for the integrator</h2>
            <p>Hand it over by a safe channel, because it contains the secret. The commands need curl and openssl.</p>
            <pre id="quick-start">${quickStart}</pre>
            <p class="actions">${copyButton(quickStart, 'Copy the quick start')}</p>`
    }
    <p class="actions"><a class="button" href="${clientPath(client.id)}">To the client</a></p>`;
}
