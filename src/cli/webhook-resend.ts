import { type Command, InvalidArgumentError } from 'commander';
import { parseDuration } from '../values/duration.js';
import { command, withServices } from './command.js';
import { fields, print } from './output.js';
import { startProgress } from './progress.js';

interface ResendOptions {
  allFailed?: true;
  client?: string;
  since?: number;
  json?: boolean;
}

export function addResend(webhook: Command): void {
  const resend = command(webhook, 'resend', 'send a FAILED notification anew, or all of them')
    .argument('[id]')
    .option('--all-failed', 'every FAILED one whose order has none that is pending or delivered')
    .option('--client <id>', 'with --all-failed: of one client')
    .option('--since <when>', 'with --all-failed: that failed since, e.g. 24h or 2026-01-01T00:00:00Z', moment);
  resend.action((id: string | undefined, options: ResendOptions) => {
    if ((id === undefined) === !options.allFailed) resend.error('give the id of one, or --all-failed');
    if (id === undefined) return resendAll(options);
    if (options.client !== undefined || options.since !== undefined)
      resend.error('--client and --since go with --all-failed');
    return resendOne(id, options);
  });
}

async function resendOne(id: string, { json }: ResendOptions): Promise<void> {
  const resent = await withServices(({ webhooks }) => webhooks.resend(id));
  print(json, resent, fields({ ...resent }));
}

async function resendAll({ client, since, json }: ResendOptions): Promise<void> {
  const progress = startProgress('Sending again', json);
  const onProgress = (done: number, total: number): void => progress.set(done, total);
  const { resent, skipped } = await withServices(async ({ clients, massResend }) => {
    if (client !== undefined) await clients.get(client);
    return massResend.run({ clientId: client, since, onProgress });
  }).finally(() => progress.end());
  const told = `Sent again: ${resent}. Skipped: ${skipped} whose order has another that is pending or delivered.`;
  print(json, { resent, skipped }, told);
}

/** In milliseconds since 1970. */
function moment(text: string): number {
  const ago = parseDuration(text);
  const at = ago === null && /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : Date.now() - (ago ?? NaN);
  if (Number.isNaN(at))
    throw new InvalidArgumentError('It must be a duration like 24h, or a time like 2026-01-01T00:00:00Z.');
  return at;
}
