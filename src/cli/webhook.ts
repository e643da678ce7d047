import { type Command, Option } from 'commander';
import type { DataSource } from 'typeorm';
import type { Config } from '../server/settings/settings.js';
import type { AttemptView, DeliveryPlan, WebhookView } from '../webhooks/webhook-view.js';
import type { WebhookStatus } from '../webhooks/webhook.entity.js';
import type { UndeliveredNotification } from '../webhooks/undelivered/undelivered-webhooks.js';
import { command, group, withServices } from './command.js';
import { fields, print, printable, table } from './output.js';
import { positive } from './values.js';
import { addResend } from './webhook-resend.js';

interface ListOptions {
  reference?: string;
  status?: WebhookStatus;
  limit: number;
  json?: boolean;
}
type Options = { json?: boolean };

export function addWebhookCommands(program: Command): void {
  const webhook = group(program, 'webhook', 'notifications and their delivery');

  command(webhook, 'list', 'list notifications, newest first')
    .option('--reference <key>', 'only those of this order')
    .addOption(new Option('--status <status>', 'only those with this status').choices(['PENDING', 'SUCCESS', 'FAILED']))
    .option('--limit <n>', 'maximum number', positive, 100)
    .action(list);
  command(webhook, 'show', 'show one notification with its attempts').argument('<id>').action(show);
  command(webhook, 'undelivered', 'print what a client has not received, signed now, one JSON document a line')
    .requiredOption('--client <id>', 'whose notifications')
    .option('--cursor <id>', 'go on behind the line with this X-Webhook-Id')
    .option('--limit <n>', 'maximum number', positive)
    .action(undelivered);
  command(webhook, 'health', 'show for each host of a client: failures in a row, oldest pending, answer times')
    .argument('<client-id>')
    .action(health);
  addResend(webhook);
}

type Queries = typeof import('../webhooks/webhook-queries.js') & typeof import('../webhooks/webhook-health.js');

/** Loads what reads webhooks only now, so that help and usage errors are quick. */
async function read<T>(work: (queries: Queries, dataSource: DataSource, config: Config) => Promise<T>): Promise<T> {
  const [{ withDatabase }, queries, health, { DeliveredReference, Webhook, WebhookAttempt }] = await Promise.all([
    import('./database.js'),
    import('../webhooks/webhook-queries.js'),
    import('../webhooks/webhook-health.js'),
    import('../webhooks/webhook.entity.js'),
  ]);
  return withDatabase([Webhook, WebhookAttempt, DeliveredReference], (dataSource, config) =>
    work({ ...queries, ...health }, dataSource, config),
  );
}

async function list({ reference, status, limit, json }: ListOptions): Promise<void> {
  const found = await read(({ listWebhooks }, dataSource) =>
    listWebhooks(dataSource, { referenceId: reference, status, limit }),
  );
  const rows = found.map(({ id, referenceId, status, attempts, nextAttemptAt }) => ({
    id,
    referenceId,
    status,
    attempts,
    nextAttemptAt,
  }));
  print(json, found, table(rows, 'No webhook found.'));
}

async function show(id: string, { json }: Options): Promise<void> {
  const { webhook, attempts, plan } = await read(({ showWebhook }, dataSource, { retry }) =>
    showWebhook(dataSource, retry, id),
  );
  const parts = [fields({ ...webhook }), attemptTable(webhook, attempts), adviceOn(attempts), planned(plan)];
  print(json, { ...webhook, attempts, plan }, parts.filter((part) => part !== '').join('\n\n'));
}

async function health(clientId: string, { json }: Options): Promise<void> {
  const found = await read(({ webhookHealth }, dataSource) => webhookHealth(dataSource, clientId));
  const rows = found.hosts.map(({ host, failuresInARow, lastDiagnosis, oldestPendingAt, answerTimes }) => ({
    host,
    failuresInARow,
    lastFailure: lastDiagnosis?.code ?? null,
    oldestPendingAt,
    medianMs: answerTimes?.medianMs ?? null,
    p95Ms: answerTimes?.p95Ms ?? null,
  }));
  print(json, found, table(rows, 'No notification found.'));
}

/** What the last failure means. */
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

interface UndeliveredOptions {
  client: string;
  cursor?: string;
  limit?: number;
  json?: boolean;
}

/** One JSON document a line, as GET /webhooks/undelivered answers; with --json one array. */
async function undelivered({ client, json, ...query }: UndeliveredOptions): Promise<void> {
  const lines: UndeliveredNotification[] = [];
  await withServices(async ({ clients, undelivered }) => {
    const { id: clientId } = await clients.get(client);
    for await (const page of undelivered.pages({ clientId, ownerId: null }, query)) {
      if (json) lines.push(...page);
      else for (const line of page) process.stdout.write(`${printable(JSON.stringify(line))}\n`);
    }
  });
  if (json) print(json, lines, '');
}
