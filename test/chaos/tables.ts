import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { readTrace, type Traced } from './journal.js';

export interface OrderRow {
  key: string;
  status: string;
}

export interface WebhookRow {
  id: string;
  referenceId: string;
  eventType: string;
  status: string;
  attempts: number;
}

export interface AttemptRow {
  webhook: string;
  number: number;
  startedAt: number;
  durationMs: number | null;
  responseStatus: number | null;
}

/** A change of a webhook, recorded by a trigger in the same transaction. */
export interface Change {
  webhook: string;
  before: string;
  after: string;
  /** Whether the change claims an attempt. */
  isClaim: boolean;
  /** Before this time the attempt was not due. */
  due: number;
  at: number;
}

export interface Tables {
  orders: OrderRow[];
  webhooks: WebhookRow[];
  attempts: AttemptRow[];
  changes: Change[];
  /** In the order in which it happened. */
  trace: Traced[];
}

export type Query = (sql: string) => Promise<Record<string, unknown>[]>;

/** Queries the embedded database through the socket in its folder. */
export function embeddedQuery(folder: string): Query {
  return async (sql) => {
    const client = new pg.Client({ host: folder, user: 'postgres', database: 'postgres' });
    client.on('error', () => undefined);
    await client.connect();
    try {
      return (await client.query<Record<string, unknown>>(sql)).rows;
    } finally {
      await client.end();
    }
  };
}

export async function countPending(query: Query): Promise<number> {
  const [row] = await query(`SELECT COUNT(*) AS pending FROM usher_webhook WHERE status = 'PENDING'`);
  return Number(row?.pending);
}

export async function readTables(query: Query): Promise<Tables> {
  const orders = await query('SELECT id, status FROM usher_movie_order');
  const webhooks = await query('SELECT id, reference_id, event_type, status, attempts FROM usher_webhook');
  const attempts = await query(
    'SELECT webhook_id, number, started_at, duration_ms, response_status FROM usher_webhook_attempt',
  );
  const trace = await readTrace(query);
  return {
    orders: orders.map(orderRow),
    webhooks: webhooks.map(webhookRow),
    attempts: attempts.map(attemptRow),
    changes: trace.flatMap(changeOf),
    trace,
  };
}

/** An order's key is the standard Base64 of "MovieOrder:" and its id. */
const orderRow = ({ id, status }: Record<string, unknown>): OrderRow => ({
  key: Buffer.from(`MovieOrder:${id}`).toString('base64'),
  status: String(status),
});

const webhookRow = (row: Record<string, unknown>): WebhookRow => ({
  id: String(row.id),
  referenceId: String(row.reference_id),
  eventType: String(row.event_type),
  status: String(row.status),
  attempts: Number(row.attempts),
});

const attemptRow = (row: Record<string, unknown>): AttemptRow => ({
  webhook: String(row.webhook_id),
  number: Number(row.number),
  startedAt: Number(row.started_at),
  durationMs: row.duration_ms === null ? null : Number(row.duration_ms),
  responseStatus: row.response_status === null ? null : Number(row.response_status),
});

function changeOf({ webhook, at, row }: Traced): Change[] {
  if (!row?.before) return [];
  const { before, after } = row;
  if (before.status === after.status && before.attempts === after.attempts) return [];
  const isClaim = after.attempts > before.attempts;
  return [{ webhook, at, before: before.status, after: after.status, isClaim, due: before.due ?? 0 }];
}

/** Repeats a query until it succeeds, because its database may be restarting. */
export async function retryUntil<T>(query: () => Promise<T>, timeoutMs: number): Promise<T> {
  const until = Date.now() + timeoutMs;
  for (;;) {
    try {
      return await query();
    } catch (error) {
      if (Date.now() > until) throw error;
      await sleep(500);
    }
  }
}
