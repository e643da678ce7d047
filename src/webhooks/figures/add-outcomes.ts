import { randomInt } from 'node:crypto';
import type { EntityManager } from 'typeorm';
import { dialectOf, type OnDataSource, tableOf } from '../../database/data-source.js';
import { isOutOfTime } from '../../database/errors.js';
import { runStatement, type Statement, type WriteSql } from '../../database/statements/statement.js';
import { hostOf } from '../../values/urls/notify-url.js';
import type { FinalStatus } from '../../events/events.js';
import { DeliveryFigure, DURATIONS, FIGURE_COLUMNS, type Histogram, RECEIPTS } from './delivery-figure.entity.js';

export interface RecordedOutcome {
  webhook: { clientId: string; notifyUrl: string; createdAt: number };
  /** On the database's clock. */
  endedAt: number;
  /** Null if no attempt was recorded: the last one was cut off. */
  attempt: { durationMs: number; hasFailed: boolean } | null;
  /** The final status that the webhook got, or null. */
  ended: FinalStatus | null;
}

const HOUR_MS = 3_600_000;
const TOTAL_PERIOD_MS = 300_000;

/** Enough that few processes share one. Each further shard is a further row to read. */
const SHARDS = 16;
let shardOfProcess = randomInt(SHARDS);

/** Throws the error of a recording again. If it may have waited for a row of the figures, the next recording uses another shard. */
export function leaveLockedShard(error: unknown): never {
  if (isOutOfTime(error)) shardOfProcess = (shardOfProcess + 1) % SHARDS;
  throw error;
}

interface Figure {
  key: [clientId: string, startsAt: number, host: string];
  /** In the order of {@link FIGURE_COLUMNS}. Objects with a field for each were a fifth of what a worker allocated. */
  counts: number[];
}

const KEY = ['client_id', 'starts_at', 'host', 'shard'];
const COLUMNS = [...KEY, ...FIGURE_COLUMNS].join(', ');

export async function addOutcomes(manager: EntityManager, outcomes: RecordedOutcome[]): Promise<void> {
  for (const statement of additionOf(manager, outcomes)) await runStatement(manager, statement);
}

/**
 * The statement that adds outcomes to the figures, or none. Run it last in the transaction that records them, because many
 * webhooks share the rows that it locks.
 */
export function additionOf(on: OnDataSource, outcomes: RecordedOutcome[]): Statement[] {
  const added = outcomes.filter(({ attempt, ended }) => attempt !== null || ended !== null);
  if (added.length === 0) return [];
  const figures = figuresOf(added);
  const { into, upsert } = dialectOf(on);
  const changed = FIGURE_COLUMNS.filter((_, position) => figures.some(({ counts }) => counts[position] !== 0));
  const sums = upsert(KEY, changed, (stored, given) => `${stored} + ${given}`);
  const write: WriteSql = (parameter) => {
    const rows = figures.map(({ key, counts }) => {
      const cells = [...[...key, shardOfProcess].map(parameter), ...counts.map((count) => count && parameter(count))];
      return `(${cells.join(', ')})`;
    });
    return `INSERT INTO ${into(tableOf(on, DeliveryFigure))} (${COLUMNS}) VALUES ${rows.join(', ')} ${sums}`;
  };
  // The text of a sole outcome depends only on the buckets of its times.
  return [{ write, name: added.length === 1 ? 'usher_add_figures' : undefined }];
}

/** What to add, in key order, so that two batches never wait for each other in a circle. */
function figuresOf(outcomes: RecordedOutcome[]): Figure[] {
  const figures = new Map<string, Figure>();
  const count = (key: Figure['key'], additions: Addition[]): void => {
    const name = key.join(' ');
    const figure = figures.get(name) ?? { key, counts: [...ZEROS] };
    figures.set(name, figure);
    for (const [column, value] of additions) {
      const position = POSITIONS.get(column) ?? 0;
      figure.counts[position] = (figure.counts[position] ?? 0) + value;
    }
  };
  for (const outcome of outcomes) {
    const { webhook, endedAt } = outcome;
    const additions = additionsOf(outcome);
    count(['', endedAt - (endedAt % TOTAL_PERIOD_MS), ''], additions);
    count([webhook.clientId, endedAt - (endedAt % HOUR_MS), hostOf(webhook.notifyUrl)], additions);
  }
  return [...figures].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, figure]) => figure);
}

const ZEROS = FIGURE_COLUMNS.map(() => 0);

const POSITIONS = new Map(FIGURE_COLUMNS.map((name, position) => [name, position]));

type Addition = [column: string, value: number];

function additionsOf({ webhook, endedAt, attempt, ended }: RecordedOutcome): Addition[] {
  const additions: Addition[] = [];
  if (attempt) {
    const durationMs = Math.round(attempt.durationMs);
    additions.push(['attempts', 1], ['duration_sum', durationMs], [columnOf(DURATIONS, durationMs), 1]);
    if (attempt.hasFailed) additions.push(['failures', 1]);
  }
  if (ended === 'FAILED') additions.push(['ended_failed', 1]);
  if (ended === 'SUCCESS')
    additions.push(['delivered', 1], [columnOf(RECEIPTS, Math.max(0, endedAt - webhook.createdAt)), 1]);
  return additions;
}

const columnOf = ({ bounds, columns }: Histogram, value: number): string => columns[bucketOf(bounds, value)] ?? '';

/** The bucket of a value: its upper bound is inclusive. */
export function bucketOf(bounds: number[], value: number): number {
  const bucket = bounds.findIndex((bound) => value <= bound);
  return bucket < 0 ? bounds.length : bucket;
}
