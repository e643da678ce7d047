import { type Command, Option } from 'commander';
import { command, withQueue } from './command.js';
import { fields, print } from './output.js';
import { startProgress } from './progress.js';
import { momentOf, pastTime } from './values.js';

interface ResendOptions {
  status?: 'FAILED';
  client?: string;
  since?: number;
  until?: number;
  reference?: string;
  json?: boolean;
}

export function addResend(webhook: Command): void {
  const resend = command(webhook, 'resend', 'resend one FAILED notification, or all of them')
    .argument('[id]')
    .addOption(
      new Option(
        '--status <status>',
        'resend every FAILED one, unless another of the same order is newer, pending or delivered',
      ).choices(['FAILED']),
    )
    .option('--client <id>', 'with --status: only those of this client')
    .option('--since <when>', 'with --status: only those that failed since, e.g. 24h or 2026-01-01T00:00:00Z', pastTime)
    .option('--until <when>', 'with --status: only those that failed before', pastTime)
    .option('--reference <key>', 'with --status: only those of this order');
  resend.action((id: string | undefined, options: ResendOptions) => {
    if ((id === undefined) === (options.status === undefined)) resend.error('give either an id or --status FAILED');
    if (id === undefined) return resendAll(options);
    const { client, since, until, reference } = options;
    if ([client, since, until, reference].some((option) => option !== undefined))
      resend.error('--client, --since, --until and --reference can only be used with --status FAILED');
    return resendOne(id, options);
  });
}

async function resendOne(id: string, { json }: ResendOptions): Promise<void> {
  const resent = await withQueue(({ webhooks }) => webhooks.resend(id));
  print(json, resent, fields({ ...resent }));
}

/** In this process, with its progress. If it is interrupted, a worker goes on. */
async function resendAll({ status, client, since, until, reference, json }: ResendOptions): Promise<void> {
  const progress = await startProgress('Resending', json);
  const request = { status, since: momentOf(since), until: momentOf(until), reference };
  const done = await withQueue(async ({ clients, resends }) => {
    if (client !== undefined) await clients.get(client);
    const holder = { clientId: client ?? null, ownerId: null };
    return resends.run(holder, request, {}, ({ resent, refused, selected }) =>
      progress.set(resent + refused, Math.max(selected, resent + refused)),
    );
  }).finally(() => progress.end());
  const { resent, refused } = done;
  print(
    json,
    done,
    `Resent: ${resent}. Refused: ${refused} (another notification of the order is newer, pending or delivered).`,
  );
}
