import type { DataSource, EntityManager } from 'typeorm';
import { dataSourceOf, dialectOf, tableOf } from '../../database/data-source.js';
import { type Parameter, runSql } from '../../database/statements/statement.js';
import { Webhook, type WebhookStatus } from '../webhook.entity.js';

/**
 * Which webhooks. A field that is null or left out matches any value. PENDING ones of all clients are not sorted by their ids, but
 * by when they are due.
 */
export interface Which {
  status?: WebhookStatus | null;
  clientId?: string | null;
  ownerId?: string | null;
  referenceId?: string | null;
}

/** Oldest first, greater than `after`; or newest first, smaller than `before` (null: any) and at least `from`. */
interface Part {
  most: number;
  after?: string;
  before?: string | null;
  from?: string | null;
}

/**
 * A part of the ids of the webhooks that match one of these, sorted. The query selects only ids: if it read the rows too,
 * MySQL would read all index entries of the client for each part.
 */
export async function webhookIds(on: DataSource | EntityManager, which: Which[], part: Part): Promise<string[]> {
  const { rows } = await runSql(on, (parameter) => selectWebhooks(dataSourceOf(on), which, part, parameter));
  return rows.map(({ id }) => String(id));
}

/** Selects these columns of the webhooks of such a part. */
export function selectWebhooks(
  dataSource: DataSource,
  which: Which[],
  part: Part,
  parameter: Parameter,
  columns = 'id',
): string {
  const [first = '', ...others] = which.map((one) => partOf(dataSource, one, part, parameter, columns));
  // Postgres refuses a second ORDER BY around a single part.
  if (others.length === 0) return first;
  const parts = [first, ...others].map((sql) => `(${sql})`).join(' UNION ALL ');
  return `${parts} ORDER BY id ${directionOf(part)} LIMIT ${part.most}`;
}

const directionOf = ({ after }: Part): string => (after === undefined ? 'DESC' : 'ASC');

/** SQL conditions of the comparisons whose value is set, such as `{ 'id <': before }`. */
export const compared = (comparisons: Record<string, string | null | undefined>, parameter: Parameter): string[] =>
  Object.entries(comparisons).flatMap(([comparison, value]) =>
    value === null || value === undefined ? [] : `${comparison} ${parameter(value)}`,
  );

function partOf(
  dataSource: DataSource,
  { status = null, clientId = null, ownerId = null, referenceId = null }: Which,
  part: Part,
  parameter: Parameter,
  columns: string,
): string {
  const direction = directionOf(part);
  const isDueIndex = status !== null && clientId === null && referenceId === null;
  const hasEnded = isDueIndex && status !== 'PENDING';
  const conditions = [
    ...compared(
      {
        'status =': status,
        'client_id =': clientId,
        'owner_id =': ownerId,
        'reference_id =': referenceId,
        'id >': part.after,
        'id <': part.before,
        'id >=': part.from,
      },
      parameter,
    ),
    // Always true of a webhook that has ended. The index of due webhooks then has the ids in their order.
    ...(hasEnded ? ['next_attempt_at IS NULL'] : []),
  ];
  const inOrder = (...columns: string[]): string[] => columns.map((column) => `${column} ${direction}`);
  const due = isDueIndex ? inOrder('status', 'next_attempt_at') : [];
  const order = dialectOf(dataSource).orderBy(
    due,
    inOrder(...(isDueIndex && !hasEnded ? ['next_attempt_at'] : []), 'id'),
  );
  const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`;
  const from = `${tableOf(dataSource, Webhook)} ${indexFor(dataSource, { status, clientId, ownerId, referenceId })}`;
  return `SELECT ${columns} FROM ${from} ${where} ORDER BY ${order.join(', ')} LIMIT ${part.most}`;
}

/** Without the hint MySQL may read all entries of a status and sort them, or all rows of a range of ids. */
function indexFor(dataSource: DataSource, { status, clientId, ownerId, referenceId }: Required<Which>): string {
  const { byIndex } = dialectOf(dataSource);
  // An owner has few webhooks, which MySQL finds by the index of owners.
  if (ownerId !== null) return '';
  if (referenceId !== null) return byIndex('usher_webhook_reference');
  if (clientId === null) return byIndex(status === null ? 'PRIMARY' : 'usher_webhook_due');
  return byIndex(status === null ? 'usher_webhook_client' : 'usher_webhook_client_status');
}
