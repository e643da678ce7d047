import { type Command, InvalidArgumentError, Option } from 'commander';
import type { DataSource } from 'typeorm';
import type { Config } from '../server/settings/settings.js';
import type { DeliveryPlan } from '../webhooks/delivery-plan.js';
import type { AttemptView, WebhookView } from '../webhooks/webhook-view.js';
import type { WebhookStatus } from '../webhooks/webhook.entity.js';
import { command, group } from './command.js';
import { fields, print, table } from './output.js';
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
  addResend(webhook);
}

type Queries = typeof import('../webhooks/webhook-queries.js');

/** Loads what reads webhooks only now, so that help and usage errors are quick. */
async function read<T>(work: (queries: Queries, dataSource: DataSource, config: Config) => Promise<T>): Promise<T> {
  const [{ withDatabase }, queries, { DeliveredReference, Webhook, WebhookAttempt }] = await Promise.all([
    import('./database.js'),
    import('../webhooks/webhook-queries.js'),
    import('../webhooks/webhook.entity.js'),
  ]);
  return withDatabase([Webhook, WebhookAttempt, DeliveredReference], (dataSource, config) =>
    work(queries, dataSource, config),
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

export function positive(text: string): number {
  if (!/^[1-9]\d{0,5}$/.test(text)) throw new InvalidArgumentError('It must be a whole number from 1 to 999999.');
  return Number(text);
}
