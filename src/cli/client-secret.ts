import { type Command, InvalidArgumentError } from 'commander';
import { parseDuration } from '../values/duration.js';
import { command, withServices } from './command.js';
import { fields, print } from './output.js';

interface RotateOptions {
  overlap?: number;
  revokeTokens?: boolean;
  json?: boolean;
}

const DAY_MS = 86_400_000;
const MAX_OVERLAP_MS = 365 * DAY_MS;

export function addClientSecretCommands(client: Command): void {
  command(client, 'rotate-secret', 'issue a new secret, shown only once; the old one stays valid for the overlap')
    .argument('<id>')
    .option(
      '--overlap <duration>',
      'how long both secrets are valid; 0s ends the old one at once (default: 24h, with --revoke-tokens 0s)',
      overlap,
    )
    .option('--revoke-tokens', 'for a secret that has leaked: also revoke all tokens of the client')
    .action(rotate);
  command(client, 'finish-rotation', 'end the overlap now, so that only the new secret is valid')
    .argument('<id>')
    .action(finish);
}

async function rotate(id: string, { revokeTokens = false, overlap, json }: RotateOptions): Promise<void> {
  // While the leaked secret is valid, new tokens can be requested with it.
  const overlapMs = overlap ?? (revokeTokens ? 0 : DAY_MS);
  const { secret, oldValidUntil } = await withServices(({ secretRotation }) =>
    secretRotation.rotate(id, overlapMs, { revokeTokens }),
  );
  const rotated = {
    client_id: id,
    client_secret: secret,
    old_secret_valid_until: new Date(oldValidUntil).toISOString(),
  };
  print(
    json,
    rotated,
    `${fields(rotated)}\n\nSave the secret now. It is not shown again. ${overlapMs === 0 ? ended(revokeTokens) : overlapping(id)}`,
  );
}

const ended = (tokensToo: boolean): string =>
  `The old secret${tokensToo ? ' and all tokens are' : ' is'} no longer valid.`;

const overlapping = (id: string): string =>
  'Until old_secret_valid_until, X-Signature is made with the old secret\n' +
  `and X-Signature-Next with the new one. To end the overlap sooner, run "usher client finish-rotation ${id}".`;

async function finish(id: string, { json }: { json?: boolean }): Promise<void> {
  await withServices(({ secretRotation }) => secretRotation.finish(id));
  print(json, { client_id: id }, `Only the new secret of client ${id} is valid now.`);
}

function overlap(text: string): number {
  const ms = parseDuration(text);
  if (ms === null || ms > MAX_OVERLAP_MS)
    throw new InvalidArgumentError('It must be a duration like 30m, 24h or 7d, at most 365d.');
  return ms;
}
