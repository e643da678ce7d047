import type { Command } from 'commander';
import { command, withServices } from './command.js';
import { confirmErasure } from './confirm-erasure.js';
import { fields, print } from './output.js';
import { startProgress } from './progress.js';

interface EraseOptions {
  yes?: true;
  json?: boolean;
}

export function addClientErase(client: Command): void {
  command(client, 'erase', 'delete a disabled client with its orders, webhooks and tokens; this cannot be undone')
    .argument('<id>')
    .option('--yes', 'do not ask for the id again')
    .action(erase);
}

async function erase(id: string, { yes, json }: EraseOptions): Promise<void> {
  if (!yes) await confirmErasure('client', id);
  const progress = await startProgress('Erasing', json);
  const erased = await withServices(({ clientErasure }) =>
    clientErasure.erase(id, { onProgress: (done) => progress.set(done, done) }),
  ).finally(() => progress.end());
  const { webhooks, references, orders, idempotencyKeys, accessTokens, grants } = erased;
  const deleted = {
    client_id: id,
    orders,
    idempotency_keys: idempotencyKeys,
    webhooks,
    delivered_references: references,
    access_tokens: accessTokens,
    grants,
  };
  print(json, deleted, `${fields(deleted)}\n\nThe client and its secrets are deleted too. The audit events stay.`);
}
