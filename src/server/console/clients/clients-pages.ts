import { Inject, Injectable } from '@nestjs/common';
import { type Client, MAX_CLIENT_NAME_LENGTH } from '../../../clients/client.entity.js';
import { type Html, html } from '../../../http/html.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../../usher.options.js';
import { MAX_EMAIL_LENGTH } from '../../../values/email-address.js';
import { timeOfId } from '../../../values/identifier.js';
import { NOTIFY_URL_MAX_LENGTH } from '../../../values/urls/notify-url.js';
import { hrefOf, textField, textOf } from '../fields/fields.js';
import { postForm } from '../frame/form.js';
import type { Page, View, Visit } from '../frame/pages.js';
import {
  clientLink,
  copyButton,
  facts,
  notice,
  pager,
  receiverLink,
  shortId,
  stateOf,
  statusBadge,
  table,
  time,
} from '../frame/parts.js';
import { ClientDirectory } from './client-directory.js';
import { type ClientFacts, ClientFactsReader } from './client-facts.js';
import { applicationFieldset } from './client-forms.js';
import { type NewClientFaults, NewClients } from './new-clients.js';
import { quickStart } from './quick-start.js';

export const CLIENTS_PATH = '/ops/clients';
const PAGE_SIZE = 50;
const CREATE = { button: 'Create the client', kind: 'primary' } as const;

/** The list of clients, and the form for a new one. */
@Injectable()
export class ClientsPages {
  constructor(
    private readonly directory: ClientDirectory,
    private readonly facts: ClientFactsReader,
    private readonly newClients: NewClients,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {}

  readonly pages: Page[] = [
    {
      path: CLIENTS_PATH,
      show: (visit) => this.list(visit),
      actions: { create: { ...CREATE, at: '', answer: (fields, visit) => this.create(fields, visit) } },
    },
    { path: `${CLIENTS_PATH}/new`, show: (visit) => newClient(visit, {}, {}) },
  ];

  private async list({ query: { q, after: given }, mayChange }: Visit): Promise<View> {
    const query = textOf(q);
    const after = textOf(given) || null;
    const { clients, next } = await this.directory.page(query, after, PAGE_SIZE);
    const facts = await this.facts.of(clients.map(({ id }) => id));
    const nothing =
      query === '' ? 'Each integrator gets a client. Create the first one.' : 'No client has this id or name.';
    const create = html`<p class="actions"><a class="button primary" href="${CLIENTS_PATH}/new">New client</a></p>`;
    const body = html`<form class="filter" method="get" action="${CLIENTS_PATH}">
        ${textField({ name: 'q', label: 'Name or id', value: query })} <button>Search</button>
      </form>
      ${mayChange ? create : null} ${table(columns(facts), clients, nothing)}
      ${pager(
        after === null ? null : [hrefOf(CLIENTS_PATH, { q: query }), 'First'],
        next === null ? null : [hrefOf(CLIENTS_PATH, { q: query, after: next }), 'Next'],
      )}`;
    return { title: 'Clients', section: 'clients', body };
  }

  /** Answers with the page itself, because no other page may ever show the secret. */
  private async create(fields: Record<string, string>, visit: Visit): Promise<View> {
    const result = await this.newClients.create(fields, visit.actor);
    if ('faults' in result) return { ...newClient(visit, fields, result.faults), status: 422 };
    const { client, secret } = result;
    const { protocol, headers } = visit.request;
    const { environment, publicUrl } = this.options;
    const authUrl = publicUrl ?? `${protocol}://${headers.host ?? ''}`;
    const hasNotifyUrl = client.notifyUrl !== null;
    const start = quickStart({ id: client.id, secret, authUrl, environment, hasNotifyUrl });
    const view = issued(`Client ${client.name} is created`, { client, secret, quickStart: start, oldValidUntil: null });
    return { ...view, status: 201 };
  }
}

const columns = (facts: Map<string, ClientFacts>) => [
  { name: 'Client', cell: ({ id, name }: Client) => clientLink({ id, name }) },
  { name: 'Id', cell: ({ id }: Client) => shortId(id) },
  {
    name: 'State',
    cell: ({ id, disabledAt }: Client) => {
      const since = facts.get(id)?.failingSince ?? null;
      return html`${stateOf(disabledAt)}${since && html` ${statusBadge('failing')} since ${time(since)}`}`;
    },
  },
  {
    name: 'Receiver',
    cell: ({ notifyUrl }: Client) =>
      notifyUrl === null ? html`<span class="dim">no Notify URL</span>` : receiverLink(new URL(notifyUrl).host),
  },
  {
    name: 'Last notification',
    cell: ({ id }: Client) => {
      const last = facts.get(id)?.lastWebhookId ?? null;
      return last && time(timeOfId(last));
    },
  },
  { name: 'Created', cell: ({ createdAt }: Client) => time(createdAt) },
];

const DEFAULT_GRANTS = ['client_credentials', 'refresh_token'];

/** The form for a new client, empty or with what was refused. */
function newClient({ request }: Visit, fields: Record<string, string>, faults: NewClientFaults): View {
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
  const form = postForm(request, { ...CREATE, action: CLIENTS_PATH, body });
  return { title: 'New client', section: 'clients', body: form ?? notice('bad', 'A viewer cannot create clients.') };
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
export function issued(title: string, { client, secret, quickStart, oldValidUntil }: IssuedSecret): View {
  const copied = (text: string): Html => html`<code>${text}</code> ${copyButton(text)}`;
  const body = html`${notice('warning', 'Copy the secret now. It is not shown again; if it is lost, issue a new one.')}
    <section class="card">
      ${facts([
        ['Client', clientLink(client)],
        ['Client id', copied(client.id)],
        ['Client secret', copied(secret)],
        [
          'Old secret',
          oldValidUntil && html`valid until ${new Date(oldValidUntil).toISOString()} (${time(oldValidUntil)})`,
        ],
      ])}
    </section>
    ${
      quickStart &&
      html`<h2>Quick start for the integrator</h2>
        <p>Hand it over by a safe channel, because it contains the secret. The commands need curl and openssl.</p>
        <pre id="quick-start">${quickStart}</pre>
        <p class="actions">${copyButton(quickStart, 'Copy the quick start')}</p>`
    }
    <p class="actions">
      <a class="button" href="${CLIENTS_PATH}/${encodeURIComponent(client.id)}">To the client</a>
    </p>`;
  return { title, section: 'clients', body };
}
