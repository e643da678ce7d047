import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Type } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { Grant } from '../../src/auth/tokens/grant.entity.js';
import { TokenStore } from '../../src/auth/tokens/store/token.store.js';
import { digestToken } from '../../src/auth/tokens/token.js';
import { dialectOf, isPostgres } from '../../src/database/data-source.js';
import { prepareSessions } from '../../src/database/sessions.js';
import { isDatabaseDown, isOutOfTime } from '../../src/database/errors.js';
import { databaseNow, inTransaction } from '../../src/database/sql.js';
import { Batcher } from '../../src/database/statements/batcher.js';
import { USHER_OPTIONS } from '../../src/usher.options.js';
import { ClaimStore } from '../../src/webhooks/deliver/claim.store.js';
import type { DeliveryState, FinishedAttempt } from '../../src/webhooks/deliver/claim.js';
import { Delivery } from '../../src/webhooks/deliver/delivery.js';
import { DeliveryPauses } from '../../src/webhooks/delivery-pauses.js';
import { Sweep } from '../../src/webhooks/queue/sweep.js';
import { OutcomeStore } from '../../src/webhooks/deliver/outcome.store.js';
import type { Outcome } from '../../src/webhooks/transport/outcome.js';
import { DeliveryPause, heldAt, Webhook } from '../../src/webhooks/webhook.entity.js';
import { type TestClient, TestUsher } from '../support/usher.js';

const DELIVERED: Outcome = {
  kind: 'delivered',
  status: 200,
  phase: 'body',
  address: '127.0.0.1',
  durationMs: 5,
  snippet: '',
};

let usher: TestUsher;
let client: TestClient;

beforeAll(async () => {
  usher = await TestUsher.start({ USHER_ROLE: 'api', DATABASE_TIMEOUT: '1s' });
  client = await usher.client('http://127.0.0.1:4000/notify');
});
afterAll(() => usher.stop());

/** Holds rows in the transaction of another session while `work` runs. */
const whileHeld = (rows: string, work: () => Promise<unknown>, lock = 'FOR UPDATE'): Promise<unknown> =>
  usher.dataSource.transaction('READ COMMITTED', async (manager) => {
    await manager.query(`SELECT 1 FROM ${rows} ${lock}`);
    return work();
  });
/** By their keys: a scan of a small table would lock others too. */
const whileLocked = (ids: string[], work: () => Promise<unknown>) =>
  whileHeld(
    `usher_webhook ${dialectOf(usher.dataSource).byIndex('PRIMARY')} WHERE id IN (${ids.map((id) => `'${id}'`).join()})`,
    work,
  );

const webhookId = async (): Promise<string> => {
  const [webhook] = await usher.webhooks.find(await client.completedOrder());
  return webhook!.id;
};

const provider = <T>(type: Type<T>): T => usher.running.app.get(type, { strict: false });
const outcomeStore = () => new OutcomeStore(usher.dataSource, usher.running.app.get(USHER_OPTIONS, { strict: false }));
const statusOf = async (id: string) => (await usher.dataSource.manager.findOneByOrFail(Webhook, { id })).status;

async function delivered(ids: string[]): Promise<FinishedAttempt[]> {
  const answers = await provider(ClaimStore).claim(ids);
  return answers.map((answer) => {
    if (answer.kind !== 'claimed') throw new Error(`the claim was ${answer.kind}`);
    const { claim } = answer;
    return { claim, outcome: DELIVERED, endedAt: claim.at.databaseMs };
  });
}

test('one locked row of a batch ends its statement in time, and the outcomes of the others are recorded', async () => {
  const ids = [await webhookId(), await webhookId(), await webhookId(), await webhookId()];
  const finished = await delivered(ids);
  const outcomes = outcomeStore();
  const batcher = new Batcher(outcomes.record.bind(outcomes));
  const record = () => Promise.allSettled(finished.map((one) => batcher.run(one)));
  await whileLocked([ids[1]!], async () => {
    const [first, locked, ...others] = await record();
    expect([first, ...others]).toEqual(Array(3).fill(expect.objectContaining({ status: 'fulfilled' })));
    expect(isDatabaseDown((locked as PromiseRejectedResult).reason)).toBe(true);
    expect(await Promise.all(ids.map(statusOf))).toEqual(['SUCCESS', 'PENDING', 'SUCCESS', 'SUCCESS']);
  });
  expect((await record()).map(({ status }) => status)).toEqual(Array(4).fill('fulfilled'));
  expect(await statusOf(ids[1]!)).toBe('SUCCESS');
});

test('an outcome that comes later does not wait for a recording that waits for a locked row', async () => {
  const ids = [await webhookId(), await webhookId()];
  const [locked, later] = await delivered(ids);
  const { records } = provider(Delivery) as unknown as { records: Batcher<FinishedAttempt, DeliveryState> };
  await whileLocked([ids[0]!], async () => {
    const first = records.run(locked!).catch(() => 'out of time');
    await setImmediate();
    expect(await Promise.race([first, records.run(later!)])).toMatchObject({ status: 'SUCCESS' });
    expect(await first).toBe('out of time');
  });
});

test('a locked row of the figures does not hold up outcomes for as long as it is locked, and each outcome is counted once', async () => {
  const [ids, outcomes] = [[await webhookId(), await webhookId()], outcomeStore()];
  const [first, second] = await delivered(ids);
  const count = async (): Promise<number> => {
    const [row] = await usher.dataSource.query<[{ sum: string }]>(
      `SELECT SUM(delivered) AS sum FROM usher_delivery_figure WHERE host = ''`,
    );
    return Number(row.sum);
  };
  await outcomes.record([first!]);
  const before = await count();
  await whileHeld("usher_delivery_figure WHERE host = ''", async () => {
    expect(isOutOfTime(await outcomes.record([second!]).catch((error: unknown) => error))).toBe(true);
    expect(await outcomes.record([second!])).toMatchObject([{ status: 'SUCCESS' }]);
  });
  expect(await count()).toBe(before + 1);
});

test('a refresh token whose row cannot be extended holds up no refresh of the same moment for longer', async () => {
  const { manager } = usher.dataSource;
  for (let made = 0; made < 4; made += 1) await client.token();
  await manager.update(Grant, { clientId: client.id }, { expiresAt: (await databaseNow(manager)) + 3_600_000 });
  const [locked, ...others] = await manager.findBy(Grant, { clientId: client.id });
  const refresh = ({ clientId, refreshDigest, id }: Grant) => {
    const accessDigest = digestToken(`access ${id}`);
    const presented = { clientId, refreshDigest, accessDigest, generation: 0, rememberedSecret: null };
    return provider(TokenStore).refresh(presented);
  };
  // A lock with which an access token can still be added.
  const lock = isPostgres(usher.dataSource) ? 'FOR NO KEY UPDATE' : 'LOCK IN SHARE MODE';
  await whileHeld(
    `usher_grant ${dialectOf(usher.dataSource).byIndex('PRIMARY')} WHERE id = '${locked!.id}'`,
    async () => {
      const refused = refresh(locked!).catch((error: unknown) => isOutOfTime(error));
      expect(await Promise.all(others.map(refresh))).toEqual(others.map(({ id }) => id));
      expect(await refused).toBe(true);
    },
    lock,
  );
});

test('a retry run leaves locked rows out: those that a pause held, and those whose last attempt was cut off', async () => {
  const { manager } = usher.dataSource;
  const subject = `client:${client.id}` as const;
  const pauses = provider(DeliveryPauses);
  await pauses.pause(subject, 'Maintenance');
  const held = [await webhookId(), await webhookId()];
  const exhausted = [await webhookId(), await webhookId()];
  const pause = await manager.findOneByOrFail(DeliveryPause, { subject });
  await manager.update(Webhook, held, { nextAttemptAt: heldAt(pause) });
  await manager.update(Webhook, exhausted, { attempts: 5, nextAttemptAt: 1 });
  await pauses.resume(subject);
  const now = await databaseNow(manager);
  const run = () => provider(Sweep).run('overdue', now);
  const dueOf = async (id: string) => (await manager.findOneByOrFail(Webhook, { id })).nextAttemptAt;
  await whileLocked([held[0]!, exhausted[0]!], async () => {
    await run();
    expect(await Promise.all(held.map(dueOf))).toEqual([heldAt(pause), now]);
    expect(await Promise.all(exhausted.map(statusOf))).toEqual(['PENDING', 'FAILED']);
  });
  await run();
  expect(await dueOf(held[0]!)).toBe(now);
  expect(await statusOf(exhausted[0]!)).toBe('FAILED');
});

test('a transaction whose wait for a lock ran out is not repeated, because each try would wait for as long', async () => {
  const id = await webhookId();
  const other = await new DataSource(usher.dataSource.options).initialize();
  const limit = isPostgres(other) ? "statement_timeout = '1s'" : 'SESSION innodb_lock_wait_timeout = 1';
  let tries = 0;
  const lock = () =>
    inTransaction(other, async (manager) => {
      tries += 1;
      await manager.query(`SET ${limit}`);
      await manager.query(`SELECT id FROM usher_webhook WHERE id = '${id}' FOR UPDATE`);
    });
  await whileLocked([id], async () => expect(isOutOfTime(await lock().catch((error: unknown) => error))).toBe(true));
  await other.destroy();
  expect(tries).toBe(1);
});

/** The limit as the database shows it, in seconds. */
async function idleLimit(): Promise<number> {
  const isOnPostgres = isPostgres(usher.dataSource);
  const [row] = await usher.dataSource.query<[{ limit: string }]>(
    isOnPostgres
      ? `SELECT setting AS "limit" FROM pg_settings WHERE name = 'idle_in_transaction_session_timeout'`
      : 'SELECT @@idle_transaction_timeout AS `limit`',
  );
  return Number(row.limit) / (isOnPostgres ? 1_000 : 1);
}

test('every session of Usher ends a transaction that waits for two minutes', async () => {
  const sessions = await Promise.all(
    Array.from({ length: 3 }, () => usher.dataSource.transaction(async () => idleLimit())),
  );
  expect(sessions).toEqual([120, 120, 120]);
});

test('a transaction of a process that was suspended gives back its locks, and its next statement fails as after a lost connection', async () => {
  const id = await webhookId();
  const other = await new DataSource(usher.dataSource.options).initialize();
  await prepareSessions(other, { statementMs: 0, idleMs: 1_000 });
  const runner = other.createQueryRunner();
  try {
    await runner.startTransaction();
    const lock = `SELECT id FROM usher_webhook WHERE id = '${id}' FOR UPDATE`;
    await runner.query(lock);
    // Waits for the lock for as long as the other transaction holds it.
    await usher.dataSource.transaction(async (manager) => {
      await manager.query(dialectOf(manager).limitStatements(0));
      expect(await manager.query(lock)).toHaveLength(1);
      await manager.query(dialectOf(manager).limitStatements(1_000));
    });
    const next = await runner.query('SELECT 1').then(String, (error: unknown) => error);
    expect(isDatabaseDown(next)).toBe(true);
  } finally {
    await runner.release();
    await other.destroy();
  }
});
