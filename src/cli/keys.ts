import type { Command } from 'commander';
import type { KeyRotationResult } from '../clients/keys/key-rotation.js';
import { command, group, withServices } from './command.js';
import { print } from './output.js';
import { startProgress } from './progress.js';

export function addKeysCommands(program: Command): void {
  const keys = group(program, 'keys', 'the master keys that seal client secrets');

  command(keys, 'rotate', 'seal every client secret anew with the first master key, while the service runs')
    .addHelpText(
      'after',
      '\nFirst give every process the new key behind the others in USHER_MASTER_KEYS, then in front of them; then run this.' +
        '\nA key file in an embedded database’s folder is given its new key by this command.',
    )
    .action(rotate);
}

async function rotate({ json }: { json?: boolean }): Promise<void> {
  const progress = startProgress('Sealing', json);
  const done = await withServices(({ keyRotation }) =>
    keyRotation.run((rotated, total) => progress.set(rotated, total)),
  ).finally(() => progress.end());
  const { rotated, total, keyId, remaining } = done;
  print(json, { rotated, total, key_id: keyId, remaining }, told(done));
}

function told({ rotated, total, keyId, remaining, place }: KeyRotationResult): string {
  const summary = `${rotated} of ${total} client secret(s) sealed anew with master key "${keyId}".`;
  if (remaining > 0)
    return `${summary}\n${remaining} were sealed with another meanwhile: give every process the new key in front and run this again.`;
  return place === 'file'
    ? `${summary}\nNothing needs the earlier keys: they were taken out of the key file.`
    : `${summary}\nNothing needs the other keys any more: they can be taken out of USHER_MASTER_KEYS.`;
}
