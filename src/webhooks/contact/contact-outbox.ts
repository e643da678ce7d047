import { type DataSource, type EntityManager, IsNull, Not } from 'typeorm';
import { ContactNotice } from '../../clients/portal.entity.js';
import { Client } from '../../clients/client.entity.js';
import { dialectOf, tableOf } from '../../database/data-source.js';
import { databaseNow, inTransaction } from '../../database/sql.js';
import { insertRows, runSql } from '../../database/statements/statement.js';
import { SEND_LIMIT_MS } from '../../values/contact-messenger.js';
import { Webhook } from '../webhook.entity.js';
import { ContactState, FailingHost } from './failing-host.entity.js';
import { hostOf } from '../../values/urls/notify-url.js';

/** At most one message an hour for each client. */
const MESSAGE_EVERY_MS = 3_600_000;
/** Longer than sending takes, so that another process sends only after a crash or a long pause. */
const LEASE_MS = 4 * SEND_LIMIT_MS;
const FIRST_PAUSE_MS = 120_000;
/** The clients whose contacts get a message in one run. The others follow in the next one. */
const CLIENTS_PER_RUN = 100;
const MAX_COUNTED = 10_000;

/** The right to send one message to the contact of a client. */
export interface Turn {
  client: Client & { contact: string };
  state: ContactState;
  /** The hosts that the message is about. */
  hosts: FailingHost[];
}

/** The present time of the database, and whether a message is due, in one query. */
export async function lookForMessages(dataSource: DataSource): Promise<{ now: number; isDue: boolean }> {
  const { now } = dialectOf(dataSource);
  const { rows } = await runSql(
    dataSource,
    () => `SELECT ${now} AS now, EXISTS (SELECT 1 ${dueFrom(dataSource)})
      OR EXISTS (SELECT 1 FROM ${tableOf(dataSource, ContactNotice)} WHERE not_before <= ${now}) AS is_due`,
  );
  return { now: Number(rows[0]?.now), isDue: Boolean(rows[0]?.is_due) };
}

/** The clients whose contact is to be told now, those with the fewest failed sendings first. */
export async function dueClients(dataSource: DataSource): Promise<string[]> {
  const { rows } = await runSql(
    dataSource,
    () => `SELECT c.id AS id ${dueFrom(dataSource)}
      GROUP BY c.id, s.failures ORDER BY COALESCE(s.failures, 0), MIN(h.message_due_at) LIMIT ${CLIENTS_PER_RUN}`,
  );
  return rows.map(({ id }) => String(id));
}

function dueFrom(dataSource: DataSource): string {
  const { now } = dialectOf(dataSource);
  return `FROM ${tableOf(dataSource, FailingHost)} h
    JOIN ${tableOf(dataSource, Client)} c ON c.id = h.client_id AND c.contact IS NOT NULL
    LEFT JOIN ${tableOf(dataSource, ContactState)} s ON s.client_id = h.client_id
    WHERE h.message_due_at <= ${now} AND (s.client_id IS NULL OR (s.not_before <= ${now} AND s.leased_until <= ${now}))`;
}

/** Null if another process has the turn, the hour is not over, or nothing is left to tell. */
export function takeTurn(dataSource: DataSource, clientId: string): Promise<Turn | null> {
  return inTransaction(dataSource, async (manager) => {
    const client = await manager.findOneBy(Client, { id: clientId });
    const { contact = null } = client ?? {};
    if (!client || contact === null) return null;
    const now = await databaseNow(manager);
    const state = await lockState(manager, clientId);
    if (state.notBefore > now || state.leasedUntil > now) return null;
    const hosts = await hostsToTell(manager, clientId);
    if (hosts.length === 0) return null;
    const leasedUntil = now + LEASE_MS;
    await manager.update(ContactState, { clientId }, { leasedUntil });
    return { client: { ...client, contact }, state: { ...state, leasedUntil }, hosts };
  });
}

async function lockState(manager: EntityManager, clientId: string): Promise<ContactState> {
  const first = { clientId, sent: 0, notBefore: 0, failures: 0, leasedUntil: 0 };
  await insertRows(manager, ContactState, [first], dialectOf(manager).upsert(['client_id'], []));
  return manager.findOneOrFail(ContactState, { where: { clientId }, lock: { mode: 'pessimistic_write' } });
}

/** Deletes hosts that recovered before the contact was told, if no notification to them ended FAILED. */
async function hostsToTell(manager: EntityManager, clientId: string): Promise<FailingHost[]> {
  await manager.delete(FailingHost, {
    clientId,
    recoveredAt: Not(IsNull()),
    announcedAt: IsNull(),
    firstEndedFailedAt: IsNull(),
  });
  return manager.find(FailingHost, {
    where: { clientId, messageDueAt: Not(IsNull()) },
    order: { failingSince: 'ASC', host: 'ASC' },
  });
}

/** By host: how many notifications ended FAILED since the host began to fail. */
export async function countFailed(dataSource: DataSource, { client, hosts }: Turn): Promise<Map<string, number>> {
  const since = Math.min(...hosts.map(({ failingSince }) => failingSince));
  const { rows } = await runSql(
    dataSource,
    (parameter) => `
      SELECT notify_url, finished_at FROM ${tableOf(dataSource, Webhook)}
      WHERE client_id = ${parameter(client.id)} AND status = 'FAILED' AND finished_at >= ${parameter(since)} AND purged_at IS NULL
      LIMIT ${MAX_COUNTED}`,
  );
  const counts = new Map<string, number>();
  for (const { notify_url: url, finished_at: at } of rows) {
    const host = hostOf(String(url));
    if (Number(at) >= (hosts.find((one) => one.host === host)?.failingSince ?? Infinity))
      counts.set(host, (counts.get(host) ?? 0) + 1);
  }
  return counts;
}

/** The message was sent. What changed meanwhile is told in the next one. */
export function recordSent(dataSource: DataSource, { client, state, hosts }: Turn): Promise<void> {
  return inTransaction(dataSource, async (manager) => {
    const now = await databaseNow(manager);
    const { sent, leasedUntil } = state;
    const next = { sent: sent + 1, notBefore: now + MESSAGE_EVERY_MS, failures: 0, leasedUntil: 0 };
    const { affected } = await manager.update(ContactState, { clientId: client.id, leasedUntil }, next);
    if (affected !== 1) return;
    for (const host of hosts) await recordTold(manager, host, now);
  });
}

async function recordTold(manager: EntityManager, { clientId, host, recoveredAt }: FailingHost, now: number) {
  const row = { clientId, host };
  if (recoveredAt === null) {
    await manager.update(FailingHost, row, { announcedAt: now });
    await manager.update(FailingHost, { ...row, recoveredAt: IsNull() }, { messageDueAt: null });
    return;
  }
  const { affected } = await manager.delete(FailingHost, { ...row, recoveredAt });
  // It failed again after the message was written. The contact does not know that yet.
  if (affected === 0) await manager.update(FailingHost, row, { announcedAt: null, messageDueAt: now });
}

/** The message could not be sent: tries again after a pause that grows to an hour. Returns the pause in milliseconds. */
export async function recordNotSent(dataSource: DataSource, { client, state }: Turn): Promise<number> {
  const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** Math.min(state.failures, 10), MESSAGE_EVERY_MS);
  const notBefore = (await databaseNow(dataSource.manager)) + pauseMs;
  const held = { clientId: client.id, leasedUntil: state.leasedUntil };
  await dataSource.manager.update(ContactState, held, { failures: state.failures + 1, notBefore, leasedUntil: 0 });
  return pauseMs;
}
