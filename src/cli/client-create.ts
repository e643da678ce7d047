import type { Command } from 'commander';
import { credentialWarning } from '../clients/client-credentials.js';
import { ClientError } from '../clients/client-error.js';
import type { Client } from '../clients/client.entity.js';
import { command, withServices } from './command.js';
import { fields, print } from './output.js';
import { readSecret } from './secret-input.js';

interface CreateOptions {
  name: string;
  notifyUrl?: string;
  id?: string;
  secretStdin?: boolean;
  json?: boolean;
}

export function addClientCreate(client: Command): void {
  command(client, 'create', 'issue a client; its secret is shown only once')
    .requiredOption('--name <name>', 'name of the client')
    .option('--notify-url <url>', 'Notify URL for orders that have none of their own')
    .option('--id <id>', 'import a client with this existing id; requires --secret-stdin')
    .option('--secret-stdin', 'read the existing secret from standard input; requires --id')
    .action(create);
}

async function create(options: CreateOptions): Promise<void> {
  if (options.id === undefined && !options.secretStdin) return issue(options);
  if (options.id === undefined || !options.secretStdin)
    throw new ClientError('--id and --secret-stdin go together; use both to import a client');
  await importClient(options, options.id);
}

async function issue({ name, notifyUrl, json }: CreateOptions): Promise<void> {
  const { client, secret } = await withServices(({ clients }) => clients.create(name, notifyUrl ?? null));
  const issued = view(client, secret);
  print(json, issued, `${fields(issued)}\n\nSave the secret now. It is not shown again.`);
}

async function importClient({ name, notifyUrl, json }: CreateOptions, id: string): Promise<void> {
  const secret = await readSecret();
  const client = await withServices(({ clients }) => clients.import(name, notifyUrl ?? null, { id, secret }));
  print(json, view(client, null), `${fields(view(client, null))}\n\nImported with the secret you gave.`);
  const warning = credentialWarning(client);
  if (warning !== null) process.stderr.write(`usher: note: ${warning}\n`);
}

/** The secret is null for an imported client, because the operator already has it. */
const view = (client: Client, secret: string | null) => ({
  client_id: client.id,
  client_secret: secret,
  name: client.name,
  notify_url: client.notifyUrl,
});
