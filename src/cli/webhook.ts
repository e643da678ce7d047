import { type Command, Option } from 'commander';
import type { AttemptView, DeliveryPlan, WebhookView } from '../webhooks/webhook-view.js';
import type { WebhookFilter } from '../webhooks/webhook-queries.js';
import type { ResendRequest } from '../webhooks/undelivered/resend.schemas.js';
import type { UndeliveredNotification, UndeliveredQuery } from '../webhooks/undelivered/undelivered-webhooks.js';
import { command, holderOf, serviceCommand, withServices } from './command.js';
import { pastTime, positive } from './input.js';
import { fields, type Output, printable, table, withProgress } from './output.js';
import type { Services } from './services.js';

export function addWebhookCommands(program: Command): void {
  addPauses(program.command('host').description('hosts of Notify URLs'), 'host');
  const webhook = program.command('webhook').description('notifications and their delivery');

  command(webhook, 'list', 'list notifications, newest first', list)
    .option('--client <id>', 'only those of this client')
    .option('--reference <key>', 'only those of this order')
    .addOption(new Option('--status <status>', 'only those with this status').choices(['PENDING', 'SUCCESS', 'FAILED']))
    .option('--limit <n>', 'maximum number', positive, 100);
  command(webhook, 'show <id>', 'show one notification with its attempts', show);
  serviceCommand(
    webhook,
    'undelivered',
    'print the notifications that a client has not received, newly signed, one JSON document a line',
    undelivered,
  )
    .requiredOption('--client <id>', 'whose notifications')
    .option('--cursor <id>', 'continue after the line with this X-Webhook-Id')
    .option('--limit <n>', 'maximum number', positive);
  command(
    webhook,
    'health <client-id>',
    'show for each host of a client: failures in a row, oldest pending, answer times',
    health,
  );
  const resend: Command = command(
    webhook,
    'resend [id]',
    'resend one FAILED notification, or all of them',
    async (id: string | undefined, options: ResendOptions, asJson: boolean) => {
      const { status, ...selection } = options;
      if ((id === undefined) === (status === undefined)) resend.error('give either an id or --status FAILED');
      if (id === undefined) return resendAll(options, asJson);
      if (Object.keys(selection).length > 0)
        resend.error('--client, --since, --until and --reference can only be used with --status FAILED');
      return withServices(async ({ webhooks }) => ({ json: await webhooks.resend(id) }), 'with-queue');
    },
  )
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
}

export function addPauses(parent: Command, kind: 'client' | 'host'): void {
  serviceCommand(
    parent,
    'pause <id> <reason>',
    'let notifications wait without using up attempts; clients can read the reason',
    async ({ pauses }, id: string, reason: string, { yes = kind === 'client' }: { yes?: boolean }) => {
      if (yes) await pauses.pause(`${kind}:${id}`, reason);
      else pauses.checkHost(id);
      const paused = (await pauses.find(`${kind}:${id}`)) !== null;
      const clients = kind === 'host' ? await pauses.clientsAt(id) : [];
      const note = paused ? null : 'nothing was paused; to pause the host, repeat the command with --yes';
      return { json: { id, paused, clients: clients.map((client) => `${client.id} ${client.name}`) }, note };
    },
  ).option('--yes', 'for a host: pause it now; without this option, only show which clients it concerns');
  serviceCommand(
    parent,
    'resume <id>',
    'resume deliveries; from the next retry run on, waiting notifications are sent, 100 a second',
    async ({ pauses }, id: string) => {
      await pauses.resume(`${kind}:${id}`);
      return { json: { id, paused: false } };
    },
  );
}

/** Loaded only when a command needs it, so that help and usage errors are quick. */
const reader = () => import('./webhook-reader.js');

type ListOptions = WebhookFilter & { client?: string; reference?: string };

async function list({ client, reference, ...filter }: ListOptions): Promise<Output> {
  const holder = client === undefined ? {} : { holder: { clientId: client, ownerId: null } };
  const json = await (await reader()).list({ ...filter, ...holder, referenceId: reference }, client);
  const rows = json.map(({ id, referenceId, status, attemptCount, nextAttemptAt }) => ({
    id,
    referenceId,
    status,
    attemptCount,
    nextAttemptAt,
  }));
  return { json, text: table(rows, 'No notification found.') };
}

async function show(id: string): Promise<Output> {
  const { webhook, attempts, plan } = await (await reader()).show(id);
  const parts = [fields(webhook), attemptTable(webhook, attempts), adviceOn(attempts), planned(plan)];
  return { json: { ...webhook, attempts, plan }, text: parts.filter(Boolean).join('\n\n') };
}

async function health(clientId: string): Promise<Output> {
  const json = await (await reader()).health(clientId);
  const rows = json.hosts.map(({ host, failuresInARow, lastDiagnosis, oldestPendingAt, answerTimes }) => ({
    host,
    failuresInARow,
    lastFailure: lastDiagnosis?.code,
    oldestPendingAt,
    medianMs: answerTimes?.medianMs,
    p95Ms: answerTimes?.p95Ms,
  }));
  return { json, text: table(rows, 'No notification found.') };
}

function adviceOn(attempts: AttemptView[]): string {
  const last = attempts.findLast(({ diagnosis }) => diagnosis !== null)?.diagnosis;
  return last ? `${last.code}: ${last.meaning}\n${last.remedy}` : '';
}

function planned(plan: DeliveryPlan | null): string {
  if (!plan) return '';
  const attempts = plan.attempts.map(({ number, notBefore }) => `attempt ${number} not before ${notBefore}`);
  return [...attempts, `FAILED not before ${plan.failedNotBefore}, if all of them fail`].join('\n');
}

function attemptTable({ status }: WebhookView, attempts: AttemptView[]): string {
  const rows = attempts.map(({ number, startedAt, durationMs, responseStatus, error }) => {
    const took = durationMs === null ? null : `${durationMs} ms`;
    const unknown = durationMs === null ? (status === 'PENDING' ? 'in progress or cut off' : 'cut off') : null;
    return { attempt: number, started: startedAt, took, status: responseStatus, error: error ?? unknown };
  });
  return table(rows, 'No attempt yet.');
}

/** One JSON document a line, as GET /webhooks/undelivered answers; with --json one array. */
async function undelivered(
  services: Services,
  { client, ...query }: UndeliveredQuery & { client: string },
  asJson: boolean,
): Promise<Output | null> {
  const json: UndeliveredNotification[] = [];
  for await (const page of services.undelivered.pages(await holderOf(services, client), query)) {
    if (asJson) json.push(...page);
    else for (const line of page) process.stdout.write(`${printable(JSON.stringify(line))}\n`);
  }
  return asJson ? { json } : null;
}

type ResendOptions = Partial<Omit<ResendRequest, 'referenceId'>> & { client?: string; reference?: string };

/** Runs in this process and shows the progress. If it is interrupted, a worker continues. */
async function resendAll({ client, reference, ...request }: ResendOptions, asJson: boolean): Promise<Output> {
  const json = await withProgress('Resending', asJson, (progress) =>
    withServices(async (services) => {
      const holder = client === undefined ? { clientId: null, ownerId: null } : await holderOf(services, client);
      return services.resends.run(holder, { ...request, referenceId: reference }, {}, ({ resent, refused, selected }) =>
        progress(resent + refused, Math.max(selected ?? 0, resent + refused)),
      );
    }, 'with-queue'),
  );
  const { resent, refused, delivered, failedAgain, pending, refusals } = json;
  return { json, text: fields({ resent, delivered, failedAgain, pending, refused, ...refusals }) };
}
