import type { DataSource } from 'typeorm';
import { newId } from '../../src/values/identifier.js';
import { progress } from '../harness/progress.js';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Usher keeps a notification for 90 days. */
const RECENT_MS = 80 * DAY_MS;
const CLIENTS = 200;
const HOSTS = 300;
const AT_ONCE = 5_000;
const AUDIT_EVENTS = 100_000;
const ORDERS_PART = 5;
const BODY = JSON.stringify({
  eventType: 'NOTIFY_ORDER_COMPLETION',
  data: { key: 'k'.repeat(40), text: 'x'.repeat(400) },
});

type Value = string | number | boolean | null;
type TableRow = Record<string, Value>;

export const hostAt = (n: number): string => `receiver-${n % HOSTS}.example`;

/** What the pages are opened with. */
export interface ManyWebhooks {
  clientId: string;
  webhookId: string;
  host: string;
}

/** Fills the tables that the console reads, as after 80 days of many clients. */
export async function addManyWebhooks(dataSource: DataSource, count: number): Promise<ManyWebhooks> {
  const now = Date.now();
  const clients = await addClients(dataSource);
  const write = (table: string, rows: Iterable<TableRow>): Promise<void> => insert(dataSource, table, rows);
  let newest = '';
  progress(`inserting ${count.toLocaleString('en')} webhooks`);
  const ids: string[] = [];
  const timeOf = (n: number): number => now - RECENT_MS + Math.floor((n / count) * RECENT_MS);
  await write(
    'usher_webhook',
    many(count, (n) => {
      const id = newId('sandbox', timeOf(n));
      ids.push(id);
      newest = id;
      return webhook(id, n, clients[n % CLIENTS]!, timeOf(n), now - timeOf(n) < HOUR_MS && n % 5 === 0);
    }),
  );
  progress(`inserting ${count.toLocaleString('en')} attempts`);
  await write(
    'usher_webhook_attempt',
    many(count, (n) => attempt(ids[n]!, n, timeOf(n))),
  );
  progress('inserting orders, figures and audit events');
  await write(
    'usher_movie_order',
    many(count / ORDERS_PART, (n) => order(n, clients[n % CLIENTS]!, timeOf(n * ORDERS_PART))),
  );
  await write('usher_delivery_figure', figures(clients, now, await figureColumns(dataSource)));
  await write(
    'usher_failing_host',
    many(12, (n) => failingHost(clients[n]!, hostAt(n), now)),
  );
  await write(
    'usher_audit_event',
    many(AUDIT_EVENTS, (n) => auditEvent(clients[n % CLIENTS]!, now - n * 60_000)),
  );
  const tables = ['webhook', 'webhook_attempt', 'movie_order', 'delivery_figure', 'audit_event'].map(
    (name) => `usher_${name}`,
  );
  for (const table of tables) await dataSource.query(`ANALYZE ${isPostgres(dataSource) ? '' : 'TABLE '}${table}`);
  return { clientId: clients[0]!, webhookId: newest, host: hostAt(0) };
}

async function addClients(dataSource: DataSource): Promise<string[]> {
  const [template] = await dataSource.query<TableRow[]>('SELECT * FROM usher_client');
  const ids = Array.from({ length: CLIENTS }, () => newId('sandbox', Date.now()));
  await insert(
    dataSource,
    'usher_client',
    many(CLIENTS, (n) => ({
      ...template,
      id: ids[n]!,
      name: `Cinema ${n}`,
      notify_url: `https://${hostAt(n)}/notify`,
    })),
  );
  return ids;
}

/** One of fifty has failed; of the last hour one of five is still pending. */
function webhook(id: string, n: number, clientId: string, at: number, isPending: boolean): TableRow {
  const status = isPending ? 'PENDING' : n % 50 === 0 ? 'FAILED' : 'SUCCESS';
  return {
    id,
    reference_id: `order-${n}`,
    event_type: 'NOTIFY_ORDER_COMPLETION',
    live_key: status === 'FAILED' ? null : `NOTIFY_ORDER_COMPLETION:order-${n}`,
    client_id: clientId,
    owner_id: null,
    notify_url: `https://${hostAt(n)}/notify`,
    uses_client_url: true,
    body: BODY,
    status,
    attempts: 1,
    next_attempt_at: isPending ? at + HOUR_MS : null,
    created_at: at,
    finished_at: isPending ? null : at + 200,
    resend_of: null,
    request_id: null,
    purged_at: null,
  };
}

function attempt(id: string, n: number, at: number): TableRow {
  const hasFailed = n % 50 === 0;
  return {
    webhook_id: id,
    number: 1,
    started_at: at,
    duration_ms: 40 + (n % 200),
    phase: 'body',
    address: '192.0.2.1',
    response_status: hasFailed ? 500 : 200,
    error: hasFailed ? 'the receiver answered 500' : null,
    diagnosis: hasFailed ? 'receiver-failed' : null,
    response_snippet: hasFailed ? 'Internal Server Error' : null,
  };
}

function order(n: number, clientId: string, at: number): TableRow {
  return {
    id: newId('sandbox', at),
    client_id: clientId,
    owner_id: null,
    status: 'COMPLETED',
    currency_code: 'MYR',
    total_amount: 4_200,
    booking_amount: 200,
    payable_amount: 4_300,
    notify_url: null,
    booking_id: `BK-${n}`,
    transaction_id: `TX-${n}`,
    qr_code: null,
    completed_by: 'internal:order-service',
    completed_from: null,
    created_at: at,
    last_updated_at: at,
    list_position: n,
    completion_position: n,
  };
}

/** A week of every host and hour, and of all of them together by five minutes, each by two processes. */
function* figures(clients: string[], now: number, columns: string[]): Generator<TableRow> {
  const row = (client_id: string, host: string, starts_at: number, shard: number): TableRow => ({
    client_id,
    starts_at,
    host,
    shard,
    ...Object.fromEntries(columns.map((name, index) => [name, index % 7])),
  });
  for (let at = now - (now % HOUR_MS) - 7 * DAY_MS; at <= now; at += HOUR_MS)
    for (let n = 0; n < HOSTS; n += 1) yield row(clients[n % CLIENTS]!, hostAt(n), at, n % 2);
  for (let at = now - (now % 300_000) - 7 * DAY_MS; at <= now; at += 300_000)
    for (const shard of [0, 1]) yield row('', '', at, shard);
}

/** All but the key. */
async function figureColumns(dataSource: DataSource): Promise<string[]> {
  const runner = dataSource.createQueryRunner();
  const table = await runner.getTable('usher_delivery_figure');
  await runner.release();
  return table!.columns.filter(({ isPrimary }) => !isPrimary).map(({ name }) => name);
}

const failingHost = (client_id: string, host: string, now: number): TableRow => ({
  client_id,
  host,
  failing_since: now - HOUR_MS,
  last_failed_at: now - 60_000,
  last_error: 'the receiver answered 500',
  last_diagnosis: 'receiver-failed',
  first_ended_failed_at: null,
  recovered_at: null,
  announced_at: null,
  message_due_at: null,
});

const auditEvent = (clientId: string, at: number): TableRow => ({
  id: newId('sandbox', at),
  created_at: at,
  actor: 'operator:ops',
  address: '192.0.2.1',
  action: 'webhook.resent',
  subject: `client:${clientId}`,
  detail: '{}',
});

const isPostgres = ({ options }: DataSource): boolean => options.type === 'postgres';

async function insert(dataSource: DataSource, table: string, rows: Iterable<TableRow>): Promise<void> {
  for (const page of pages(rows)) {
    const columns = Object.keys(page[0]!);
    const into = `INSERT INTO ${table} (${columns.join(', ')})`;
    if (isPostgres(dataSource))
      await dataSource.query(`${into} SELECT ${columns.join(', ')} FROM json_populate_recordset(NULL::${table}, $1)`, [
        JSON.stringify(page),
      ]);
    else await dataSource.query(`${into} VALUES ?`, [page.map((row) => columns.map((name) => row[name]))]);
  }
}

function* pages(rows: Iterable<TableRow>): Generator<TableRow[]> {
  let page: TableRow[] = [];
  for (const row of rows) {
    page.push(row);
    if (page.length === AT_ONCE) {
      yield page;
      page = [];
    }
  }
  if (page.length > 0) yield page;
}

function* many(count: number, make: (n: number) => TableRow): Generator<TableRow> {
  for (let n = 0; n < count; n += 1) yield make(n);
}
