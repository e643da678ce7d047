import { type EntityManager, In } from 'typeorm';
import { dialectOf } from '../../database/data-source.js';
import { insertRows } from '../../database/statements/statement.js';
import { FailingHost } from './failing-host.entity.js';
import { afterAttempt, afterAttemptElsewhere, type HostAttempt } from './host-changes.js';

/** How many hosts of a client have a row. A further host replaces the one whose last failure is the oldest. */
export const MAX_HOSTS = 20;
/** A row that another transaction inserted at the same moment is locked and read in the next round. */
const MAX_ROUNDS = 5;

/**
 * Records the attempts that ended at hosts, in the transaction of their outcomes. It reads without a lock first: most
 * attempts at a host that is known to fail change nothing.
 */
export async function noteAttempts(manager: EntityManager, attempts: HostAttempt[]): Promise<void> {
  if (attempts.length === 0 || changesOf(await rowsOf(manager, attempts), attempts).length === 0) return;
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const changes = changesOf(await rowsOf(manager, attempts, 'locked'), attempts);
    if (changes.length === 0) return;
    await write(manager, changes);
  }
}

interface Change {
  before: FailingHost | null;
  after: FailingHost | null;
}

/** In key order, so that two batches never wait for each other. */
function rowsOf(manager: EntityManager, attempts: HostAttempt[], lock?: 'locked'): Promise<FailingHost[]> {
  const clientIds = [...new Set(attempts.map(({ clientId }) => clientId))];
  return manager.find(FailingHost, {
    where: { clientId: In(clientIds) },
    order: { clientId: 'ASC', host: 'ASC' },
    ...(lock && { lock: { mode: 'pessimistic_write' } }),
  });
}

function changesOf(rows: FailingHost[], attempts: HostAttempt[]): Change[] {
  const known = new Map(rows.map((row) => [keyOf(row), row]));
  const next = new Map<string, FailingHost | null>(known);
  for (const attempt of attempts.toSorted((one, other) => one.endedAt - other.endedAt)) {
    for (const [key, row] of next)
      if (row?.clientId === attempt.clientId && row.host !== attempt.host)
        next.set(key, afterAttemptElsewhere(row, attempt));
    next.set(keyOf(attempt), afterAttempt(next.get(keyOf(attempt)) ?? null, attempt));
  }
  const changes = [...next.keys()]
    .sort()
    .map((key) => ({ before: known.get(key) ?? null, after: next.get(key) ?? null }))
    .filter(({ before, after }) => after !== before);
  return [...changes, ...evictions(rows, changes)];
}

/** If a client has too many hosts, each new one replaces the oldest. */
function evictions(rows: FailingHost[], changes: Change[]): Change[] {
  const clients = new Set(changes.flatMap(({ before, after }) => (before === null && after ? after.clientId : [])));
  const untouched = rows.filter((row) => !changes.some(({ before }) => before === row));
  return [...clients].flatMap((clientId) => {
    const isOwn = (row: FailingHost | null): boolean => row?.clientId === clientId;
    const count = changes.filter(({ after }) => isOwn(after)).length + untouched.filter(isOwn).length;
    const oldest = untouched.filter(isOwn).sort((one, other) => one.lastFailedAt - other.lastFailedAt);
    return oldest.slice(0, Math.max(0, count - MAX_HOSTS)).map((before) => ({ before, after: null }));
  });
}

async function write(manager: EntityManager, changes: Change[]): Promise<void> {
  // An existing row is not changed: another transaction inserted it, and the next round reads it.
  const onConflict = dialectOf(manager).upsert(['client_id', 'host'], []);
  const added = changes.flatMap(({ before, after }) => (before === null && after ? after : []));
  if (added.length > 0) await insertRows(manager, FailingHost, added, onConflict);
  for (const { before, after } of changes) {
    if (before === null) continue;
    const { clientId, host } = before;
    if (after) await manager.update(FailingHost, { clientId, host }, after);
    else await manager.delete(FailingHost, { clientId, host });
  }
}

const keyOf = ({ clientId, host }: Pick<FailingHost, 'clientId' | 'host'>): string => `${clientId} ${host}`;
