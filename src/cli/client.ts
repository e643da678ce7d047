import type { Command } from 'commander';
import type { Client } from '../clients/client.entity.js';
import type { ClientsService } from '../clients/clients.service.js';
import { StartUpError } from '../values/start-up-error.js';
import { addClientApplication } from './client-application.js';
import { addClientCreate } from './client-create.js';
import { addClientErase } from './erase.js';
import { addClientSecretCommands } from './client-secret.js';
import { command, group, withServices } from './command.js';
import { fields, print, table } from './output.js';

type Options = { json?: boolean | undefined };

export function addClientCommands(program: Command): void {
  const client = group(program, 'client', 'issue and change API clients');

  addClientCreate(client);
  addClientApplication(client);
  addClientSecretCommands(client);
  addClientErase(client);
  command(client, 'list', 'list all clients').action(async ({ json }: Options) => {
    const clients = await withServices((services) => services.clients.list());
    print(
      json,
      clients.map(view),
      table(clients.map(view), 'There is no client yet. Create one with "usher client create --name …".'),
    );
  });
  command(client, 'show', 'show one client').argument('<id>').action(showAccount);
  command(client, 'rename', 'give it another name, which only people see')
    .argument('<id>')
    .argument('<name>')
    .action((id: string, name: string, options: Options) => show(options, (service) => service.rename(id, name)));
  command(client, 'disable', 'refuse its credentials and revoke its tokens; pending notifications are still delivered')
    .argument('<id>')
    .action((id: string, options: Options) => show(options, (service) => service.setDisabled(id, true)));
  command(client, 'enable', 'accept its credentials again; it needs new tokens')
    .argument('<id>')
    .action((id: string, options: Options) => show(options, (service) => service.setDisabled(id, false)));
  command(client, 'revoke-tokens', 'revoke all its tokens, within 5 s in every process')
    .argument('<id>')
    .action(revokeTokens);
  command(client, 'set-notify-url', 'change its Notify URL')
    .argument('<id>')
    .argument('<url>')
    .option('--test', 'send a signed sample there first, and change nothing unless it is answered 2xx')
    .action(setNotifyUrl);
  command(client, 'set-contact', 'set the e-mail address that is told when a Notify URL of it fails')
    .argument('<id>')
    .argument('[address]')
    .option('--none', 'tell nobody any more')
    .action(setContact);
}

async function setContact(id: string, address: string | undefined, options: Options & { none?: true }): Promise<void> {
  if ((address === undefined) === (options.none === undefined))
    throw new StartUpError('give either an address or --none');
  await show(options, (service) => service.setContact(id, address ?? null));
}

/** Grants, redirect URIs and the state of the secrets too; never a secret. */
async function showAccount(id: string, { json }: Options): Promise<void> {
  const [client, account] = await withServices(({ clients, account }) =>
    Promise.all([clients.get(id), account.show(id)]),
  );
  const { grants, redirectUris, secrets } = account;
  const shown = secrets.map(({ createdAt, expiresAt, signs }) => ({
    created_at: createdAt,
    expires_at: expiresAt,
    signs,
  }));
  const whole = { ...view(client), grants, redirect_uris: redirectUris, secrets: shown };
  const lists = { grants: grants.join(' '), redirect_uris: redirectUris.join(' ') || null };
  print(json, whole, `${fields({ ...view(client), ...lists })}\n\n${table(shown, 'It has no valid secret.')}`);
}

async function setNotifyUrl(id: string, url: string, { test, json }: Options & { test?: true }): Promise<void> {
  if (!test) return show({ json }, (service) => service.setNotifyUrl(id, url));
  const client = await withServices(async ({ clients, account }) => {
    await account.setNotifyUrl(await clients.get(id), { notifyUrl: url });
    return clients.get(id);
  });
  print(json, view(client), fields(view(client)));
}

async function revokeTokens(id: string, { json }: Options): Promise<void> {
  await withServices(({ clients }) => clients.revokeTokens(id));
  const advice = `If its secret has leaked, run "usher client rotate-secret ${id} --revoke-tokens" instead.`;
  print(json, { client_id: id }, `All tokens of client ${id} are revoked; it can request new ones.\n${advice}`);
}

async function show({ json }: Options, work: (service: ClientsService) => Promise<Client>): Promise<void> {
  const client = await withServices(({ clients }) => work(clients));
  print(json, view(client), fields(view(client)));
}

function view(client: Client) {
  return {
    client_id: client.id,
    name: client.name,
    notify_url: client.notifyUrl,
    contact: client.contact,
    created_at: new Date(client.createdAt).toISOString(),
    disabled_at: client.disabledAt === null ? null : new Date(client.disabledAt).toISOString(),
  };
}
