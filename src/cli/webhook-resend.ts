import { type Command, InvalidArgumentError } from 'commander';
import { z } from 'zod';
import { parseDuration } from '../values/duration.js';
import { command, withQueue } from './command.js';
import { fields, print } from './output.js';
import { startProgress } from './progress.js';

interface ResendOptions {
  allFailed?: true;
  client?: string;
  since?: number;
  json?: boolean;
}

export function addResend(webhook: Command): void {
  const resend = command(webhook, 'resend', 'resend one FAILED notification, or all of them')
    .argument('[id]')
    .option('--all-failed', 'resend every FAILED one, unless another of the same order is pending or delivered')
    .option('--client <id>', 'with --all-failed: only those of this client')
    .option(
      '--since <when>',
      'with --all-failed: only those that failed since, e.g. 24h or 2026-01-01T00:00:00Z',
      pastTime,
    );
  resend.action((id: string | undefined, options: ResendOptions) => {
    if ((id === undefined) === !options.allFailed) resend.error('give either an id or --all-failed');
    if (id === undefined) return resendAll(options);
    if (options.client !== undefined || options.since !== undefined)
      resend.error('--client and --since can only be used with --all-failed');
    return resendOne(id, options);
  });
}

async function resendOne(id: string, { json }: ResendOptions): Promise<void> {
  const resent = await withQueue(({ webhooks }) => webhooks.resend(id));
  print(json, resent, fields({ ...resent }));
}

async function resendAll({ client, since, json }: ResendOptions): Promise<void> {
  const progress = await startProgress('Resending', json);
  const onProgress = (done: number, total: number): void => progress.set(done, total);
  const { resent, skipped } = await withQueue(async ({ clients, massResend }) => {
    if (client !== undefined) await clients.get(client);
    return massResend.run({ clientId: client, since, onProgress });
  }).finally(() => progress.end());
  const summary = `Resent: ${resent}. Skipped: ${skipped} (another notification of the same order is pending or delivered).`;
  print(json, { resent, skipped }, summary);
}

/** A date or a time that exists: Date.parse() would read 2026-02-30 as 2 March. */
const Time = z.union([z.iso.date(), z.iso.datetime({ offset: true, local: true })]);

/** Parses a time, or a duration before now, to milliseconds since 1970. */
export function pastTime(text: string): number {
  const ago = parseDuration(text);
  if (ago !== null) return Date.now() - ago;
  if (Time.safeParse(text).success) return Date.parse(text);
  throw new InvalidArgumentError('It must be a duration like 24h, or a time like 2026-01-01T00:00:00Z.');
}
