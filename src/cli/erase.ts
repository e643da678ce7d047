import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Command } from 'commander';
import type { Erased } from '../retention/row-erasure.js';
import { StartUpError } from '../values/start-up-error.js';
import { command, withServices } from './command.js';
import { fields, print } from './output.js';
import { startProgress } from './progress.js';
import type { Services } from './services.js';

/** What a client or a member is called on the command line, and what deletes one. */
interface Erasure {
  kind: 'client' | 'member';
  /** What the operator types: a client's id, a member's name. */
  argument: 'id' | 'name';
  /** The field of the output that shows it. */
  field: 'client_id' | 'name';
  /** Which rows are deleted besides those that are counted. */
  alsoDeleted: string;
  erase(services: Services, subject: string, options: { onProgress: (done: number) => void }): Promise<Erased>;
}

const CLIENT: Erasure = {
  kind: 'client',
  argument: 'id',
  field: 'client_id',
  alsoDeleted: 'The client and its secrets',
  erase: ({ clientErasure }, id, options) => clientErasure.erase(id, options),
};

const MEMBER: Erasure = {
  kind: 'member',
  argument: 'name',
  field: 'name',
  alsoDeleted: 'The member and their sessions',
  erase: ({ memberErasure }, name, options) => memberErasure.erase(name, options),
};

export const addClientErase = (client: Command): void =>
  add(client, CLIENT, 'delete a disabled client with its orders, webhooks and tokens; this cannot be undone');

export const addMemberErase = (member: Command): void =>
  add(member, MEMBER, 'delete a disabled member with orders, webhooks and tokens; this cannot be undone');

function add(parent: Command, erasure: Erasure, description: string): void {
  command(parent, 'erase', description)
    .argument(`<${erasure.argument}>`)
    .option('--yes', `do not ask for the ${erasure.argument} again`)
    .action((subject: string, options: { yes?: true; json?: boolean }) => erase(erasure, subject, options));
}

async function erase(erasure: Erasure, subject: string, { yes, json }: { yes?: true; json?: boolean }): Promise<void> {
  if (!yes) await confirm(erasure, subject);
  const progress = await startProgress('Erasing', json);
  const erased = await withServices((services) =>
    erasure.erase(services, subject, { onProgress: (done) => progress.set(done, done) }),
  ).finally(() => progress.end());
  const deleted = {
    [erasure.field]: subject,
    orders: erased.orders,
    idempotency_keys: erased.idempotencyKeys,
    webhooks: erased.webhooks,
    delivered_references: erased.references,
    access_tokens: erased.accessTokens,
    grants: erased.grants,
  };
  print(json, deleted, `${fields(deleted)}\n\n${erasure.alsoDeleted} are deleted too. The audit events stay.`);
}

/** Asks to type the id or the name again. Reads one line, from a terminal or a pipe. */
async function confirm({ kind, argument }: Erasure, subject: string): Promise<void> {
  process.stderr.write(
    `This deletes everything of ${kind} ${subject} and cannot be undone. Type its ${argument} to go on: `,
  );
  const lines = createInterface({ input: process.stdin });
  const [line] = (await Promise.race([once(lines, 'line'), once(lines, 'close').then(() => [''])])) as [string];
  lines.close();
  process.stderr.write('\n');
  if (line.trim() !== subject)
    throw new StartUpError(`the ${argument} was not confirmed; nothing was deleted. Type it, or use --yes`);
}
