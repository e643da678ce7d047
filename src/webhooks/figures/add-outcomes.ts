import { randomInt } from 'node:crypto';
import type { EntityManager } from 'typeorm';
import { tableOf } from '../../database/data-source.js';
import { type ListColumn, rowList, valueList } from '../../database/statements/row-list.js';
import { runStatement } from '../../database/statements/statement.js';
import { hostOf } from '../contact/failing-hosts.js';
import type { FinalStatus } from '../webhook-ended.event.js';
import { DeliveryFigure, DURATION_COLUMNS, FIGURE_COLUMNS, RECEIPT_COLUMNS } from './delivery-figure.entity.js';
import { bucketOf, DURATION_BOUNDS_MS, RECEIPT_BOUNDS_MS } from './histogram.js';

/** What a transaction recorded of one webhook. */
export interface RecordedOutcome {
  webhook: { clientId: string; notifyUrl: string; createdAt: number };
  /** On the database's clock. */
  endedAt: number;
  /** Null if no attempt was recorded: the last one was cut off. */
  attempt: { durationMs: number; hasFailed: boolean } | null;
  /** The status in which the webhook ended with it, or null. */
  ended: FinalStatus | null;
}

export const HOUR_MS = 3_600_000;
export const TOTAL_PERIOD_MS = 300_000;

/** Enough that few processes share one. Each further shard is a further row to read. */
const SHARDS = 16;
const SHARD_OF_PROCESS = randomInt(SHARDS);

type FigureRow = Record<string, string | number>;

/**
 * Adds outcomes to the figures, by one statement. Call it last in the transaction that records them, because the rows that it
 * locks are those of many webhooks.
 */
export async function addOutcomes(manager: EntityManager, outcomes: RecordedOutcome[]): Promise<void> {
  const added = outcomes.filter(({ attempt, ended }) => attempt !== null || ended !== null);
  if (added.length > 0) await add(manager, figureRows(added, SHARD_OF_PROCESS));
}

/** The rows to add, in key order, so that two batches never wait for each other in a circle. */
export function figureRows(outcomes: RecordedOutcome[], shard: number): FigureRow[] {
  const rows = new Map<string, FigureRow>();
  for (const outcome of outcomes) {
    const { clientId, notifyUrl } = outcome.webhook;
    const startOf = (periodMs: number): number => outcome.endedAt - (outcome.endedAt % periodMs);
    const keys = [
      { client_id: '', starts_at: startOf(TOTAL_PERIOD_MS), host: '', shard },
      { client_id: clientId, starts_at: startOf(HOUR_MS), host: hostOf(notifyUrl), shard },
    ];
    const additions = additionsOf(outcome);
    for (const key of keys) {
      const name = `${key.client_id} ${key.starts_at} ${key.host}`;
      const row = rows.get(name) ?? { ...key, ...ZEROS };
      rows.set(name, row);
      for (const [column, value] of additions) row[column] = Number(row[column]) + value;
    }
  }
  return [...rows].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, row]) => row);
}

const ZEROS = Object.fromEntries(FIGURE_COLUMNS.map((name) => [name, 0]));

function additionsOf({ webhook, endedAt, attempt, ended }: RecordedOutcome): [column: string, value: number][] {
  const additions: [string, number][] = [];
  if (attempt) {
    const durationMs = Math.round(attempt.durationMs);
    additions.push(['attempts', 1], ['duration_sum', durationMs]);
    additions.push([DURATION_COLUMNS[bucketOf(DURATION_BOUNDS_MS, durationMs)] ?? '', 1]);
    if (attempt.hasFailed) additions.push(['failures', 1]);
  }
  if (ended === 'FAILED') additions.push(['ended_failed', 1]);
  if (ended === 'SUCCESS') {
    const bucket = bucketOf(RECEIPT_BOUNDS_MS, Math.max(0, endedAt - webhook.createdAt));
    additions.push(['delivered', 1], [RECEIPT_COLUMNS[bucket] ?? '', 1]);
  }
  return additions;
}

const COLUMNS: Record<string, ListColumn> = {
  client_id: 'text',
  starts_at: 'bigint',
  host: 'text',
  shard: 'int',
  ...Object.fromEntries(FIGURE_COLUMNS.map((name) => [name, name === 'duration_sum' ? 'bigint' : 'int'])),
};
const NAMES = Object.keys(COLUMNS);

async function add(manager: EntityManager, rows: FigureRow[]): Promise<void> {
  const { dataSource } = manager;
  const table = tableOf(dataSource, DeliveryFigure);
  const into = `INSERT INTO ${table} ${dataSource.options.type === 'postgres' ? 'AS f ' : ''}(${NAMES.join(', ')})`;
  if (dataSource.options.type === 'postgres') {
    const { sql, parameters } = rowList(dataSource, COLUMNS, rows);
    const sums = FIGURE_COLUMNS.map((name) => `${name} = f.${name} + EXCLUDED.${name}`).join(', ');
    const text = `${into} SELECT * FROM ${sql} ON CONFLICT (client_id, starts_at, host, shard) DO UPDATE SET ${sums}`;
    await runStatement(manager, { text, parameters, name: 'usher_add_figures' });
    return;
  }
  const sums = FIGURE_COLUMNS.map((name) => `${name} = ${name} + VALUES(${name})`).join(', ');
  const { sql, parameters } = valueList(
    dataSource,
    rows.map((row) => NAMES.map((name) => row[name])),
  );
  await runStatement(manager, { text: `${into} VALUES ${sql} ON DUPLICATE KEY UPDATE ${sums}`, parameters });
}
