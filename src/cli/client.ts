import type { Command } from 'commander';
import type { ApplicationChange } from '../clients/client-applications.js';
import { credentialWarning } from '../clients/client-credentials.js';
import { type Client, GRANT_TYPES, type GrantType } from '../clients/client.entity.js';
import { parseDuration } from '../values/duration.js';
import { StartUpError } from '../values/start-up-error.js';
import { command, serviceCommand, withServices } from './command.js';
import { parser, readSecret } from './input.js';
import { addErase } from './maintenance.js';
import { fields, isoTime, listOf, type Output, snakeCase, table } from './output.js';
import { addPortalLink } from './people.js';
import type { Services } from './services.js';
import { addPauses } from './webhook.js';

const grantTypes = parser(`a list of ${GRANT_TYPES.join(', ')}`, (text) => {
  const given = text.split(',').map((one) => one.trim() as GrantType);
  return given.every((one) => GRANT_TYPES.includes(one)) ? given : null;
});

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const overlap = parser('a duration like 30m, 24h or 7d, at most 365d', (text) => {
  const ms = parseDuration(text);
  return ms !== null && ms <= 365 * DAY_MS ? ms : null;
});

export function addClientCommands(program: Command): void {
  const client = program.command('client').description('issue and change API clients');

  const creation = command(client, 'create', 'issue a client; its secret is shown only once', create);
  withApplicationOptions(creation)
    .requiredOption('--name <name>', 'name of the client')
    .option('--notify-url <url>', 'Notify URL for orders that have none of their own')
    .option('--contact <address>', 'e-mail address that gets a message when a Notify URL fails')
    .option('--id <id>', 'import a client with this existing id; requires --secret-stdin')
    .option('--secret-stdin', 'read the existing secret from standard input; requires --id');
  withApplicationOptions(
    serviceCommand(
      client,
      'set-application <id>',
      'set its redirect URIs, its grants, and whether it is trusted',
      setApplication,
    ),
  ).option('--no-trusted', 'ask members for their consent');
  serviceCommand(
    client,
    'rotate-secret <id>',
    'issue a new secret, shown only once; the old one stays valid for the overlap',
    rotateSecret,
  )
    .option(
      '--overlap <duration>',
      'how long both secrets are valid; 0s ends the old one at once (default: 24h, with --leaked 1h, with --revoke-tokens 0s)',
      overlap,
    )
    .option('--leaked', 'refuse the old secret at once: during the overlap it only signs notifications')
    .option('--revoke-tokens', 'also revoke all tokens of the client')
    .option('--replace', 'only replace the new secret, which nobody received; the old one stays as it is');
  serviceCommand(
    client,
    'finish-rotation <id>',
    'end the overlap now, so that only the new secret is valid',
    async ({ secretRotation }, id: string) => {
      await secretRotation.finish(id);
      return { json: { client_id: id }, text: `Only the new secret of client ${id} is valid now.` };
    },
  );
  addErase(client, 'client');
  addPauses(client, 'client');
  serviceCommand(client, 'list', 'list all clients', async ({ clients }) =>
    listOf((await clients.list()).map(view), 'There is no client yet. Create one with "usher client create --name …".'),
  );
  serviceCommand(client, 'show <id>', 'show one client', showAccount);
  serviceCommand(
    client,
    'rename <id> <name>',
    'change its name, which is only shown to people',
    ({ clients }, id: string, name: string) => shown(clients.rename(id, name)),
  );
  serviceCommand(
    client,
    'disable <id>',
    'refuse its credentials and revoke its tokens; pending notifications are still delivered',
    ({ clients }, id: string) => shown(clients.setDisabled(id, true)),
  );
  serviceCommand(
    client,
    'enable <id>',
    'accept its credentials again; it needs new tokens',
    ({ clients }, id: string) => shown(clients.setDisabled(id, false)),
  );
  serviceCommand(client, 'revoke-tokens <id>', 'revoke all its tokens, within 5 s in every process', revokeTokens);
  serviceCommand(client, 'set-notify-url <id> <url>', 'change its Notify URL', setNotifyUrl).option(
    '--test',
    'send a signed sample to it first, and change nothing unless the answer is 2xx',
  );
  addPortalLink(client);
  command(
    client,
    'set-contact <id> [address]',
    'set the e-mail address that gets a message when a Notify URL of it fails',
    setContact,
  ).option('--none', 'remove the address, so that nobody gets a message');
}

interface ApplicationOptions {
  redirectUri?: string[];
  grants?: GrantType[];
  trusted?: boolean;
}

const withApplicationOptions = (one: Command): Command =>
  one
    .option('--redirect-uri <url...>', 'all redirect URIs, to which browsers return; they are compared exactly')
    .option('--grants <list>', `the grants it may use, separated by commas: ${GRANT_TYPES.join(', ')}`, grantTypes)
    .option('--trusted', 'do not ask members for their consent');

const applicationChange = ({ redirectUri, grants, trusted }: ApplicationOptions): ApplicationChange => ({
  redirectUris: redirectUri,
  grantTypes: grants,
  isTrusted: trusted,
});

interface CreateOptions extends ApplicationOptions {
  name: string;
  notifyUrl?: string;
  contact?: string;
  id?: string;
  secretStdin?: boolean;
}

async function create(options: CreateOptions): Promise<Output> {
  const { id, secretStdin = false, name, notifyUrl = null, contact } = options;
  if ((id !== undefined) !== secretStdin)
    throw new StartUpError('--id and --secret-stdin go together; use both to import a client');
  const imported = id === undefined ? null : { id, secret: await readSecret('Client secret') };
  const change = applicationChange(options);
  const { client, secret } = await withServices(async ({ applications, clients, keyCheck }) => {
    await keyCheck.check();
    await keyCheck.checkForProcesses();
    // Checks the options first, so that a faulty one creates no client whose secret nobody gets.
    applications.checkNew(change);
    if (contact !== undefined) clients.checkContact(contact);
    const created = imported
      ? { client: await clients.import(name, notifyUrl, imported), secret: null }
      : await clients.create(name, notifyUrl);
    if (contact !== undefined) created.client = await clients.setContact(created.client.id, contact);
    const isApplication = Object.values(change).some((value) => value !== undefined);
    if (isApplication) await applications.configure(created.client.id, change);
    return created;
  });
  const json = {
    client_id: client.id,
    client_secret: secret,
    name: client.name,
    notify_url: client.notifyUrl,
    contact: client.contact,
  };
  return imported
    ? { json, text: `${fields(json)}\n\nImported with the secret you gave.`, note: credentialWarning(client) }
    : { json, text: `${fields(json)}\n\nSave the secret now. It is not shown again.` };
}

async function setApplication(
  { clients, applications }: Services,
  id: string,
  options: ApplicationOptions,
): Promise<Output> {
  const set = await applications.configure(id, applicationChange(options));
  return {
    json: {
      client_id: id,
      grants: (await clients.get(id)).grantTypes.join(' '),
      redirect_uris: set?.redirectUris.join(' ') ?? null,
      trusted: set?.isTrusted ?? false,
    },
  };
}

async function rotateSecret(
  { secretRotation, keyCheck }: Services,
  id: string,
  {
    replace,
    overlap,
    leaked = false,
    revokeTokens = false,
  }: { replace?: true; overlap?: number; leaked?: boolean; revokeTokens?: boolean },
): Promise<Output> {
  if (replace && (overlap !== undefined || leaked || revokeTokens)) throw new StartUpError('give --replace alone');
  await keyCheck.checkForProcesses();
  // While a leaked secret authenticates, new tokens can be requested with it.
  const overlapMs = overlap ?? (leaked ? HOUR_MS : revokeTokens ? 0 : DAY_MS);
  const { secret, oldValidUntil } = replace
    ? await secretRotation.replace(id)
    : await secretRotation.rotate(id, overlapMs, { hasLeaked: leaked, revokeTokens });
  const json = { client_id: id, client_secret: secret, old_secret_valid_until: isoTime(oldValidUntil) };
  const then =
    overlapMs === 0 && !replace
      ? `The old secret${revokeTokens ? ' and all tokens are' : ' is'} no longer valid.`
      : 'Until old_secret_valid_until, X-Signature is made with the old secret\n' +
        `and X-Signature-Next with the new one. To end the overlap sooner, run "usher client finish-rotation ${id}".`;
  return { json, text: `${fields(json)}\n\nSave the secret now. It is not shown again. ${then}` };
}

/** Also shows the grants, the redirect URIs and the state of the secrets, but never a secret. */
async function showAccount({ clients, account }: Services, id: string): Promise<Output> {
  const [client, { grants, redirectUris, secrets }] = await Promise.all([clients.get(id), account.show(id)]);
  const shownSecrets = secrets.map(snakeCase);
  const lists = { grants: grants.join(' '), redirect_uris: redirectUris.join(' ') || null };
  return {
    json: { ...view(client), grants, redirect_uris: redirectUris, secrets: shownSecrets },
    text: `${fields({ ...view(client), ...lists })}\n\n${table(shownSecrets, 'It has no valid secret.')}`,
  };
}

async function revokeTokens({ clients }: Services, id: string): Promise<Output> {
  await clients.revokeTokens(id);
  const revoked = `All tokens of client ${id} are revoked; it can request new ones.`;
  const advice = `If its secret has leaked, run "usher client rotate-secret ${id} --leaked --revoke-tokens" instead.`;
  return { json: { client_id: id }, text: `${revoked}\n${advice}` };
}

async function setNotifyUrl(
  { clients, account }: Services,
  id: string,
  url: string,
  { test }: { test?: true },
): Promise<Output> {
  if (!test) return shown(clients.setNotifyUrl(id, url));
  await account.setNotifyUrl(await clients.get(id), { notifyUrl: url });
  return shown(clients.get(id));
}

async function setContact(id: string, address: string | undefined, { none }: { none?: true }): Promise<Output> {
  if ((address === undefined) === (none === undefined)) throw new StartUpError('give either an address or --none');
  return withServices(({ clients }) => shown(clients.setContact(id, address ?? null)));
}

const shown = async (client: Promise<Client>): Promise<Output> => ({ json: view(await client) });

const view = ({ id, name, notifyUrl, contact, createdAt, disabledAt }: Client) => ({
  client_id: id,
  name,
  notify_url: notifyUrl,
  contact,
  created_at: isoTime(createdAt),
  disabled_at: isoTime(disabledAt),
});
