import type { Command } from 'commander';
import { credentialWarning } from '../clients/client-credentials.js';
import type { Client } from '../clients/client.entity.js';
import { StartUpError } from '../values/start-up-error.js';
import {
  type ApplicationOptions,
  applicationChange,
  isApplication,
  withApplicationOptions,
} from './client-application.js';
import { command, withServices } from './command.js';
import type { Services } from './services.js';
import { fields, print } from './output.js';
import { readSecret } from './secret-input.js';

interface CreateOptions extends ApplicationOptions {
  name: string;
  notifyUrl?: string;
  contact?: string;
  id?: string;
  secretStdin?: boolean;
  json?: boolean;
}

export function addClientCreate(client: Command): void {
  withApplicationOptions(command(client, 'create', 'issue a client; its secret is shown only once'))
    .requiredOption('--name <name>', 'name of the client')
    .option('--notify-url <url>', 'Notify URL for orders that have none of their own')
    .option('--contact <address>', 'e-mail address that is told when a Notify URL fails')
    .option('--id <id>', 'import a client with this existing id; requires --secret-stdin')
    .option('--secret-stdin', 'read the existing secret from standard input; requires --id')
    .action(create);
}

async function create(options: CreateOptions): Promise<void> {
  if (options.id === undefined && !options.secretStdin) return issue(options);
  if (options.id === undefined || !options.secretStdin)
    throw new StartUpError('--id and --secret-stdin go together; use both to import a client');
  await importClient(options, options.id);
}

async function issue({ name, notifyUrl, json, ...options }: CreateOptions): Promise<void> {
  const { client, secret } = await withServices((services) =>
    asApplication(services, options, () => services.clients.create(name, notifyUrl ?? null)),
  );
  const issued = view(client, secret);
  print(json, issued, `${fields(issued)}\n\nSave the secret now. It is not shown again.`);
}

async function importClient({ name, notifyUrl, json, ...options }: CreateOptions, id: string): Promise<void> {
  const secret = await readSecret();
  const { client } = await withServices((services) =>
    asApplication(services, options, async () => ({
      client: await services.clients.import(name, notifyUrl ?? null, { id, secret }),
    })),
  );
  print(json, view(client, null), `${fields(view(client, null))}\n\nImported with the secret you gave.`);
  const warning = credentialWarning(client);
  if (warning !== null) process.stderr.write(`usher: note: ${warning}\n`);
}

/** Checks the options first, so that a faulty one creates no client. */
async function asApplication<T extends { client: Client }>(
  { applications, clients }: Services,
  options: ApplicationOptions & Pick<CreateOptions, 'contact'>,
  create: () => Promise<T>,
): Promise<T> {
  const { contact } = options;
  applications.check(applicationChange(options));
  if (contact !== undefined) clients.checkContact(contact);
  const created = await create();
  if (contact !== undefined) created.client = await clients.setContact(created.client.id, contact);
  if (isApplication(options)) await applications.configure(created.client.id, applicationChange(options));
  return created;
}

/** The secret is null for an imported client, because the operator already has it. */
const view = (client: Client, secret: string | null) => ({
  client_id: client.id,
  client_secret: secret,
  name: client.name,
  notify_url: client.notifyUrl,
  contact: client.contact,
});
