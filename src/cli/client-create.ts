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
  command(client, 'create', 'issue a client; its secret is shown this once')
    .requiredOption('--name <name>', 'what the client is called')
    .option('--notify-url <url>', 'where its notifications go unless an order says otherwise')
    .option('--id <id>', 'an id that was issued elsewhere; goes with --secret-stdin')
    .option('--secret-stdin', 'the secret that was issued with it, on standard input')
    .action(create);
}

async function create(options: CreateOptions): Promise<void> {
  if (options.id === undefined && !options.secretStdin) return issue(options);
  if (options.id === undefined || !options.secretStdin)
    throw new ClientError('--id and --secret-stdin go together: a client is imported with both');
  await importClient(options, options.id);
}

async function issue({ name, notifyUrl, json }: CreateOptions): Promise<void> {
  const { client, secret } = await withServices(({ clients }) => clients.create(name, notifyUrl ?? null));
  const issued = view(client, secret);
  print(json, issued, `${fields(issued)}\n\nKeep the secret now: it is not shown again.`);
}

async function importClient({ name, notifyUrl, json }: CreateOptions, id: string): Promise<void> {
  const secret = await readSecret();
  const client = await withServices(({ clients }) => clients.import(name, notifyUrl ?? null, { id, secret }));
  print(json, view(client, null), `${fields(view(client, null))}\n\nImported: its secret is the one you gave.`);
  const warning = credentialWarning(client);
  if (warning !== null) process.stderr.write(`usher: note: ${warning}\n`);
}

/** An imported secret is not shown: whoever imports it has it. */
const view = (client: Client, secret: string | null) => ({
  client_id: client.id,
  client_secret: secret,
  name: client.name,
  notify_url: client.notifyUrl,
});
