import { ClientApplications } from '../../../clients/client-applications.js';
import { type Client, USUAL_GRANTS } from '../../../clients/client.entity.js';
import { ClientsService } from '../../../clients/clients.service.js';
import { originOf } from '../../../http/exchange.js';
import { Html, html } from '../../../http/html.js';
import { Problem } from '../../../http/problem.js';
import type { PortalLinks } from '../../../portal/portal.js';
import { parseDuration } from '../../../values/duration.js';
import { hostOf } from '../../../values/urls/notify-url.js';
import { boundedCount } from '../../../database/statements/bounded-search.js';
import {
  checkField,
  type FormPart,
  hiddenField,
  refilled,
  searchField,
  type Texts,
} from '../../../http/pages/fields.js';
import { listPage, MAX_COUNTED } from '../../../http/pages/list.js';
import { postForm } from '../../../http/pages/form.js';
import { type Action, faultText, pagesWith, type Visit } from '../../../http/pages/site.js';
import { copiedId, copyButton, facts, notice, shortId, stateOf, statusBadge, time } from '../../../http/pages/parts.js';
import { clientLink, clientPath, receiverLink } from '../frame/links.js';
import { clientsFound, clientsNamed, listClients } from './clients-data.js';
import { type Application, applicationFields, applicationParts, CLIENT_FIELDS } from './client-page.js';

const CLIENTS_PATH = '/ops/clients';
const CREATE = { button: 'Create the client', kind: 'primary' } as const;

export const clientsPages = pagesWith(
  [ClientsService, ClientApplications],
  (clients, applications, { manager, options }) => {
    /**
     * All fields are checked first, so that a faulty one creates no client. Answers with the page itself, because no other
     * page may ever show the secret.
     */
    async function create(fields: Texts, visit: Visit) {
      const [name = '', notifyUrl = '', contact = ''] = [fields.name, fields.notifyUrl, fields.contact].map((text) =>
        text?.trim(),
      );
      const application = applicationFields(fields);
      const hasGrant = application.grantTypes.length > 0;
      const faults = faultsOf({
        name: () => clients.checkName(name),
        notifyUrl: () => notifyUrl && clients.checkNotifyUrl(notifyUrl),
        contact: () => contact && clients.checkContact(contact),
        redirectUris: () => applications.checkNew(hasGrant ? application : { ...application, grantTypes: undefined }),
        // The last of the grants, so that the fault is below all of them.
        'grant.authorization_code': () => hasGrant || applications.checkNew({ grantTypes: [] }),
      });
      if (fields.isSameName !== 'yes' && (await clientsNamed(manager, name).getExists())) faults.name ??= SAME_NAME;
      if (Object.keys(faults).length > 0) return { ...newClient(visit, fields, faults), status: 422 };
      const { actor, request } = visit;
      const { client, secret } = await clients.create(name, notifyUrl || null, actor);
      if (contact !== '') await clients.setContact(client.id, contact, actor);
      if (isUnusual(application)) await applications.configure(client.id, application, actor);
      const quickStart = quickStartOf(client.id, secret, options.publicUrl ?? originOf(request), options.environment);
      return { ...issued(visit, `Client ${client.name} is created`, { client, secret, quickStart }), status: 201 };
    }

    return [
      listPage({
        path: CLIENTS_PATH,
        title: 'Clients',
        noun: 'client',
        fields: { q: searchField('Name or id') },
        read: ({ values }, part) => listClients(manager, values.q, part),
        count: ({ values }) => boundedCount(clientsFound(manager, values.q), MAX_COUNTED),
        columns: {
          Client: { value: 'name', cell: (client) => clientLink(client) },
          Id: { value: 'id', cell: ({ id }) => shortId(id) },
          State: {
            value: ({ disabledAt, failingSince }) => (disabledAt ? 'disabled' : failingSince ? 'failing' : 'active'),
            cell: (client) =>
              html`${stateOf(client)}${client.failingSince && html` ${statusBadge('failing')} since ${time(client.failingSince)}`}`,
          },
          Receiver: {
            value: ({ notifyUrl }) => notifyUrl && hostOf(notifyUrl),
            cell: ({ notifyUrl }) =>
              notifyUrl === null ? html`<span class="dim">no Notify URL</span>` : receiverLink(hostOf(notifyUrl)),
          },
          'Last notification': { time: 'lastAt' },
          Created: { time: 'createdAt' },
        },
        nothing: ['Each integrator gets a client. Create the first one.', 'No client has this id or name.'],
        over: ({ mayChange }) => mayChange && html`<a class="button primary" href="${CLIENTS_PATH}/new">New client</a>`,
        actions: { create: { ...CREATE, at: '', answer: (fields, visit) => create(fields, visit) } },
      }),
      { path: `${CLIENTS_PATH}/new`, show: (visit) => newClient(visit, null, {}) },
    ];
  },
);

const USUAL: Application = { redirectUris: [], grantTypes: [...USUAL_GRANTS], isTrusted: false };

/** A new client has {@link USUAL}. */
const isUnusual = ({ redirectUris, grantTypes }: Application) =>
  redirectUris.length > 0 || grantTypes.length !== 2 || grantTypes.includes('authorization_code');

/** What is wrong with the fields of a form, by their names. Each check throws a {@link Problem} if its field is faulty. */
function faultsOf(checks: Record<string, () => unknown>) {
  const faults: Texts = {};
  for (const [name, check] of Object.entries(checks)) {
    try {
      check();
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      faults[name] = faultText(error);
    }
  }
  return faults;
}

const SAME_NAME = 'There is already a client with this name. Give another name, or tick the box below.';

/** The form for a new client: empty, or with what was refused. */
function newClient({ request }: Visit, refused: Texts | null, faults: Texts) {
  const parts: FormPart[] = [
    { ...CLIENT_FIELDS.name, hint: 'It is only shown to people.' },
    {
      ...CLIENT_FIELDS.notifyUrl,
      hint: 'Notifications are sent here unless their order has a Notify URL of its own. It can be set later.',
    },
    { ...CLIENT_FIELDS.contact, hint: 'This address gets an e-mail when a Notify URL fails.' },
    ...(faults.name === SAME_NAME ? [checkField('isSameName', 'Create another client with this name', false)] : []),
    new Html(`<details ${refused ? 'open' : ''}><summary>Grants and redirect URIs</summary>`),
    ...applicationParts(USUAL),
    new Html('</details>'),
  ];
  const form = postForm(request, CLIENTS_PATH, CREATE, refused ? refilled(parts, refused, faults) : parts);
  return { title: 'New client', body: form ?? notice('bad', 'A viewer cannot create clients.') };
}

interface IssuedSecret {
  client: Client;
  secret: string;
  /** Of a new client: commands for its integrator. */
  quickStart?: string;
  /** Of a rotation: until when the old secret signs, in milliseconds since 1970. */
  oldValidUntil?: number;
}

/** The only page that ever shows a secret. */
export function issued(visit: Visit, title: string, { client, secret, quickStart, oldValidUntil }: IssuedSecret) {
  const isOperator = visit.clientId === null;
  const copied = (text: string) => html`<code>${text}</code> ${copyButton(text)}`;
  const body = html`${notice('warning', 'Copy the secret now. It is not shown again; if it is lost, issue a new one.')}
    <section class="card">
      ${facts({
        Client: isOperator ? clientLink(client) : client.name,
        'Client id': copied(client.id),
        'Client secret': copied(secret),
        'Old secret':
          oldValidUntil &&
          html`makes X-Signature until ${new Date(oldValidUntil).toISOString()} (${time(oldValidUntil)})`,
      })}
    </section>
    ${
      quickStart &&
      html`<h2>Quick start for the integrator</h2>
        <p>Hand it over by a safe channel, because it contains the secret. The commands need curl.</p>
        <pre id="quick-start">${quickStart}</pre>
        <p class="actions">${copyButton(quickStart, 'Copy the quick start')}</p>`
    }
    <p class="actions">
      <a class="button" href="${isOperator ? clientPath(client.id) : '~/settings'}"
        >${isOperator ? 'To the client' : 'To the settings'}</a
      >
    </p>
    ${
      isOperator &&
      html`<h2>Hand over the secret by a link, which shows it once</h2>
        ${postForm(visit.request, `${clientPath(client.id)}/portal-link`, LINK, [
          hiddenField('secret', 'yes'),
          checkField('mayChange', MAY_CHANGE, true),
          VALID,
        ])}`
    }`;
  return { title, body };
}

/** What the integrator of a new client runs first, for the commands of the guides, which use these variables. */
const quickStartOf = (id: string, secret: string, authUrl: string, environment: string) =>
  `# Your client of the ${environment}. Keep the secret to yourself
export AUTH_URL=${quoted(authUrl)} CLIENT_ID=${quoted(id)} CLIENT_SECRET=${quoted(secret)}
# Gets a token. The next commands are at ${authUrl}/docs/quick-start
eval "$(curl -s "$AUTH_URL/docs/shell.sh")"`;

/** A word of a POSIX shell that means exactly this text. Pages replace bidirectional controls, so `printf` makes them. */
export const quoted = (text: string) =>
  `'${text.replaceAll("'", "'\\''").replace(/\p{Bidi_Control}/gu, (char) => `'"$(printf '${octal(char)}')"'`)}'`;

const octal = (char: string) => [...Buffer.from(char)].map((byte) => `\\${byte.toString(8)}`).join('');

const LINK = { button: 'Make a link', kind: 'primary' } as const;
const MAY_CHANGE = 'Whoever opens it may also change the Notify URL, the contact and the secret';
const VALID = { name: 'valid', label: 'Valid for', options: { '7d': '7 days', '24h': '24 hours', '1h': '1 hour' } };

export const portalActions = (links: PortalLinks): Record<string, Action> => ({
  'portal-link': {
    ...LINK,
    fields: () => [checkField('mayChange', MAY_CHANGE, false), VALID],
    // The link is not stored, so only this answer shows it.
    answer: async ({ mayChange, secret, valid = '' }, { id: clientId, actor, request }) => {
      const showsSecret = secret === 'yes';
      const { url } = await links.create(clientId, {
        mayChange: mayChange === 'yes',
        showsSecret,
        validMs: parseDuration(valid) ?? 0,
        actor,
      });
      const { href } = new URL(url, originOf(request));
      const body = html`${notice('warning', 'Copy the link now. It is not shown again.')}
        <p>${copiedId(href)}</p>
        <p>The first person who opens it is signed in${showsSecret && ' and sees the secret, once'}.</p>
        <p><a class="button" href="${clientPath(clientId)}#portal">To the client</a></p>`;
      return { title: 'Link to the portal', body };
    },
  },
  'withdraw-link': {
    button: 'Withdraw',
    kind: 'danger',
    fields: (id) => [hiddenField('link', id as string)],
    done: 'The link is withdrawn, and the session that it opened has ended.',
    run: ({ link = '' }, { id, actor }) => links.withdraw(id, link, actor),
  },
});
