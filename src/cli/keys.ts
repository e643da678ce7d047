import type { Command } from 'commander';
import type { KeyRotationResult } from '../clients/keys/key-rotation.js';
import { command, group, withServices } from './command.js';
import { print } from './output.js';
import { startProgress } from './progress.js';

export function addKeysCommands(program: Command): void {
  const keys = group(program, 'keys', 'the master keys that encrypt client secrets');

  command(keys, 'rotate', 'encrypt every client secret again with the first master key, while the service runs')
    .addHelpText(
      'after',
      '\nFirst add the new key at the end of USHER_MASTER_KEYS in every process, then move it to the front in every process,' +
        '\nthen run this command. For the key file of an embedded database, this command makes the new key itself.',
    )
    .action(rotate);
}

async function rotate({ json }: { json?: boolean }): Promise<void> {
  const progress = await startProgress('Encrypting', json);
  const done = await withServices(({ keyRotation }) =>
    keyRotation.run((rotated, total) => progress.set(rotated, total)),
  ).finally(() => progress.end());
  const { rotated, total, keyId, remaining } = done;
  print(json, { rotated, total, key_id: keyId, remaining }, summaryOf(done));
}

function summaryOf({ rotated, total, keyId, remaining, place }: KeyRotationResult): string {
  const summary = `${rotated} of ${total} client secret(s) encrypted again with master key "${keyId}".`;
  if (remaining > 0)
    return `${summary}\n${remaining} were encrypted with another key meanwhile. Put the new key first in every process and run this again.`;
  return place === 'file'
    ? `${summary}\nThe earlier keys are no longer needed; they were removed from the key file.`
    : `${summary}\nThe other keys are no longer needed; remove them from USHER_MASTER_KEYS.`;
}
