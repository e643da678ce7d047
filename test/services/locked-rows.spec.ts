import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { DataSource } from 'typeorm';
import { dialectOf, isPostgres } from '../../src/database/data-source.js';
import { prepareSessions } from '../../src/database/sessions.js';
import { isDatabaseDown } from '../../src/database/sql.js';
import { Batcher } from '../../src/database/statements/batcher.js';
import { USHER_OPTIONS } from '../../src/usher.options.js';
import { ClaimStore } from '../../src/webhooks/deliver/claim.store.js';
import { DeliveryEvents } from '../../src/webhooks/deliver/delivery-events.js';
import { OutcomeStore } from '../../src/webhooks/deliver/outcome.store.js';
import type { Outcome } from '../../src/webhooks/transport/outcome.js';
import { Webhook } from '../../src/webhooks/webhook.entity.js';
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

/** Holds the row in the transaction of another session while `work` runs. */
const whileLocked = (dataSource: DataSource, id: string, work: () => Promise<unknown>): Promise<unknown> =>
  dataSource.transaction(async (manager) => {
    await manager.query(`SELECT id FROM usher_webhook WHERE id = '${id}' FOR UPDATE`);
    return work();
  });

const webhookId = async (): Promise<string> => {
  const [webhook] = await usher.webhooks.find(await client.completedOrder());
  return webhook!.id;
};

test('one locked row of a batch ends its statement in time, and the outcomes of the others are recorded', async () => {
  const { app } = usher.running;
  const options = app.get(USHER_OPTIONS, { strict: false });
  const ids = [await webhookId(), await webhookId(), await webhookId(), await webhookId()];
  const answers = await new ClaimStore(usher.dataSource, options, app.get(DeliveryEvents, { strict: false })).claim(
    ids,
  );
  const outcomes = new OutcomeStore(usher.dataSource, options);
  const batcher = new Batcher(outcomes.record.bind(outcomes));
  const record = () =>
    Promise.allSettled(
      answers.map((answer) => {
        if (answer.kind !== 'claimed') throw new Error(`the claim was ${answer.kind}`);
        const { claim } = answer;
        return batcher.run({ claim, outcome: DELIVERED, endedAt: claim.at.databaseMs });
      }),
    );
  const statusOf = async (id: string) => (await usher.dataSource.manager.findOneByOrFail(Webhook, { id })).status;
  await whileLocked(usher.dataSource, ids[1]!, async () => {
    const [first, locked, ...others] = await record();
    expect([first, ...others]).toEqual(Array(3).fill(expect.objectContaining({ status: 'fulfilled' })));
    expect(isDatabaseDown((locked as PromiseRejectedResult).reason)).toBe(true);
    expect(await Promise.all(ids.map(statusOf))).toEqual(['SUCCESS', 'PENDING', 'SUCCESS', 'SUCCESS']);
  });
  expect((await record()).map(({ status }) => status)).toEqual(Array(4).fill('fulfilled'));
  expect(await statusOf(ids[1]!)).toBe('SUCCESS');
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
