import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { isPostgres } from '../../src/database/data-source.js';
import { USHER_OPTIONS } from '../../src/usher.options.js';
import type { FinishedAttempt } from '../../src/webhooks/deliver/claim.js';
import { ClaimStore } from '../../src/webhooks/deliver/claim.store.js';
import { OutcomeStore } from '../../src/webhooks/deliver/outcome.store.js';
import type { Outcome } from '../../src/webhooks/transport/outcome.js';
import { Webhook } from '../../src/webhooks/webhook.entity.js';
import { eventually } from '../support/eventually.js';
import { type TestClient, TestUsher } from '../support/usher.js';

const FACTS = { phase: 'body', address: '127.0.0.1', durationMs: 5, snippet: '' } as const;
const DELIVERED: Outcome = { kind: 'delivered', status: 200, ...FACTS };

let usher: TestUsher;
let client: TestClient;

beforeAll(async () => {
  usher = await TestUsher.start({ USHER_ROLE: 'api' });
  client = await usher.client('http://127.0.0.1:4000/notify');
});
afterAll(() => usher.stop());

async function newWebhook(): Promise<string> {
  const [webhook] = await usher.webhooks.find(await client.completedOrder());
  return webhook!.id;
}

/** An attempt of the webhook, although the lease of an earlier one may not have ended. */
async function delivered(id: string): Promise<FinishedAttempt> {
  await usher.dataSource.manager.update(Webhook, { id }, { nextAttemptAt: 1 });
  const [result] = await usher.running.app.get(ClaimStore, { strict: false }).claim([id]);
  if (result?.kind !== 'claimed') throw new Error(`the claim was ${result?.kind}`);
  return { claim: result.claim, outcome: DELIVERED, endedAt: result.claim.at.databaseMs };
}

/** A process that has begun to record an attempt, so it looks first at what was recorded before. */
async function recordedOnce() {
  const outcomes = new OutcomeStore(usher.dataSource, usher.running.app.get(USHER_OPTIONS, { strict: false }));
  const earlier = await delivered(await newWebhook());
  await outcomes.record([earlier]);
  return (one: FinishedAttempt) => outcomes.record([earlier, one]);
}

/** How many sessions of this database wait for a lock. */
async function waiting(): Promise<number> {
  const rows = await usher.dataSource.query<object[]>(
    isPostgres(usher.dataSource)
      ? `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
      : `SELECT p.id FROM information_schema.innodb_trx t JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id
          WHERE t.trx_state = 'LOCK WAIT' AND p.db = DATABASE()`,
  );
  return rows.length;
}

async function ends(): Promise<number> {
  const [row] = await usher.dataSource.query<[{ sum: string }]>(
    `SELECT SUM(delivered) AS sum FROM usher_delivery_figure WHERE host = ''`,
  );
  return Number(row.sum);
}

test('of two processes that record successes of one webhook again at the same moment, one counts its end', async () => {
  const records = [await recordedOnce(), await recordedOnce()];
  const id = await newWebhook();
  const finished = [await delivered(id), await delivered(id)];
  const before = await ends();
  let recording: Promise<unknown>[] = [];
  await usher.dataSource.transaction(async (manager) => {
    await manager.findOneOrFail(Webhook, { where: { id }, lock: { mode: 'pessimistic_write' } });
    recording = records.map((record, index) => record(finished[index]!));
    await eventually('both wait', async () => (await waiting()) === 2);
  });
  await Promise.all(recording);
  expect(await ends()).toBe(before + 1);
});
