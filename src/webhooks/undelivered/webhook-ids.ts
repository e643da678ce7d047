import type { DataSource, EntityManager } from 'typeorm';
import { tableOf } from '../../database/data-source.js';
import { dataSourceOf, runStatement, statementFor } from '../../database/statements/statement.js';
import { Webhook, type WebhookStatus } from '../webhook.entity.js';

/** Which webhooks: of one client, or of all (null); of one resource owner or reference, or of all. */
interface Which {
  status: Exclude<WebhookStatus, 'SUCCESS'>;
  clientId: string | null;
  ownerId?: string | null;
  referenceId?: string | null;
}

/** Oldest first behind `after`, or newest first in front of `before`; null: from the end. */
type Part = { most: number } & ({ after: string } | { before: string | null });

/**
 * A part of the ids of the webhooks that fit one of these, in the order of the ids. It selects nothing else, because a query
 * that also reads the rows makes MySQL read all index entries of the client for each part.
 */
export async function webhookIds(on: DataSource | EntityManager, which: Which[], part: Part): Promise<string[]> {
  const dataSource = dataSourceOf(on);
  const direction = 'after' in part ? 'ASC' : 'DESC';
  const statement = statementFor(dataSource, (parameter) => {
    const [first = '', ...others] = which.map((one) => idsOf(dataSource, one, part, parameter));
    // Postgres refuses a second ORDER BY around a single part.
    if (others.length === 0) return first;
    const parts = [first, ...others].map((sql) => `(${sql})`).join(' UNION ALL ');
    return `${parts} ORDER BY id ${direction} LIMIT ${part.most}`;
  });
  const { rows } = await runStatement(on, statement);
  return rows.map(({ id }) => String(id));
}

function idsOf(
  dataSource: DataSource,
  { status, clientId, ownerId = null, referenceId = null }: Which,
  part: Part,
  parameter: (value: unknown) => string,
): string {
  const direction = 'after' in part ? 'ASC' : 'DESC';
  const isDueIndex = clientId === null && referenceId === null;
  const conditions = [
    `status = '${status}'`,
    ...(clientId === null ? [] : [`client_id = ${parameter(clientId)}`]),
    ...(ownerId === null ? [] : [`owner_id = ${parameter(ownerId)}`]),
    ...(referenceId === null ? [] : [`reference_id = ${parameter(referenceId)}`]),
    // Always true of a FAILED webhook. The index of due webhooks then has the ids in their order.
    ...(isDueIndex ? ['next_attempt_at IS NULL'] : []),
    ...('after' in part ? [`id > ${parameter(part.after)}`] : []),
    ...('before' in part && part.before !== null ? [`id < ${parameter(part.before)}`] : []),
  ];
  // Postgres reads the index of due webhooks in its order only if all its columns are named.
  const order = isDueIndex ? `status ${direction}, next_attempt_at ${direction}, id ${direction}` : `id ${direction}`;
  return `SELECT id FROM ${tableOf(dataSource, Webhook)} WHERE ${conditions.join(' AND ')} ORDER BY ${order} LIMIT ${part.most}`;
}
