import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { USHER_OPTIONS } from '../../../src/usher.options.js';
import type { FinishedAttempt } from '../../../src/webhooks/deliver/claim.js';
import { ClaimStore } from '../../../src/webhooks/deliver/claim.store.js';
import { DeliveryEvents } from '../../../src/webhooks/deliver/delivery-events.js';
import { OutcomeStore } from '../../../src/webhooks/deliver/outcome.store.js';
import { DeliveryFigure } from '../../../src/webhooks/figures/delivery-figure.entity.js';
import type { Outcome } from '../../../src/webhooks/transport/outcome.js';
import { Webhook, WebhookAttempt } from '../../../src/webhooks/webhook.entity.js';
import { loggerOf } from '../../support/statements.js';
import { TestUsher } from '../../support/usher.js';

const FACTS = { address: '192.0.2.1', phase: 'body', snippet: '' } as const;
const delivered = (durationMs: number): Outcome => ({ kind: 'delivered', status: 200, durationMs, ...FACTS });
const refused = (durationMs: number): Outcome => ({
  kind: 'refused',
  status: 500,
  retryAfterMs: 0,
  durationMs,
  ...FACTS,
});

let usher: TestUsher;
let references = 0;
beforeAll(async () => {
  // Without a worker: the test claims and records itself.
  usher = await TestUsher.start({ USHER_ROLE: 'api', WEBHOOK_MAX_ATTEMPTS: '2' });
});
afterAll(() => usher.stop());
afterEach(() => usher.dataSource.manager.clear(DeliveryFigure));

const options = () => usher.running.app.get(USHER_OPTIONS, { strict: false });
const outcomeStore = () => new OutcomeStore(usher.dataSource, options());
const claimStore = () =>
  new ClaimStore(usher.dataSource, options(), usher.running.app.get(DeliveryEvents, { strict: false }));

/** Notifications of one client that are claimed. */
async function claimed(clientId: string, hosts: string[]): Promise<FinishedAttempt['claim'][]> {
  const ids: string[] = [];
  for (const host of hosts) {
    const notice = { referenceId: `r-${(references += 1)}`, clientId, notifyUrl: `https://${host}/notify`, data: {} };
    ids.push((await usher.webhooks.notify(notice)).webhook.id);
  }
  return claim(ids);
}

async function claim(ids: string[]): Promise<FinishedAttempt['claim'][]> {
  await usher.dataSource.manager.update(Webhook, ids, { nextAttemptAt: 0 });
  return (await claimStore().claim(ids)).flatMap((result) => (result.kind === 'claimed' ? result.claim : []));
}

const finish = (claim: FinishedAttempt['claim'], outcome: Outcome, afterMs = 30): FinishedAttempt => ({
  claim,
  outcome,
  endedAt: claim.webhook.createdAt + afterMs,
});

type Sums = Record<string, number>;

/** The columns that are not 0, added up by client and host. */
async function figures(): Promise<Record<string, Sums>> {
  const rows = await usher.dataSource.query<Record<string, string | number>[]>('SELECT * FROM usher_delivery_figure');
  const sums: Record<string, Sums> = {};
  for (const { client_id, host, starts_at, shard: _, ...row } of rows) {
    expect(Number(starts_at) % (client_id === '' ? 300_000 : 3_600_000)).toBe(0);
    const sum = (sums[`${client_id} ${host}`] ??= {});
    for (const [name, value] of Object.entries(row))
      if (Number(value) !== 0) sum[name] = (sum[name] ?? 0) + Number(value);
  }
  return sums;
}

test('every recorded outcome is in the figures of its client and host and in those of all, to the number', async () => {
  const { id } = await usher.client();
  const [one, two, three, four] = await claimed(id, ['a.example', 'a.example', 'a.example', 'b.example:8443']);
  const outcomes = [finish(one!, delivered(12)), finish(two!, delivered(90), 1_500), finish(three!, refused(8))];
  await outcomeStore().record([...outcomes, finish(four!, refused(31_000))]);
  const atA = { attempts: 3, failures: 1, delivered: 2, duration_sum: 110 };
  const buckets = { duration_0: 1, duration_1: 1, duration_3: 1, receipt_1: 1, receipt_7: 1 };
  expect(await figures()).toEqual({
    [`${id} a.example`]: { ...atA, ...buckets },
    [`${id} b.example:8443`]: { attempts: 1, failures: 1, duration_sum: 31_000, duration_13: 1 },
    ' ': { ...atA, attempts: 4, failures: 2, duration_sum: 31_110, ...buckets, duration_13: 1 },
  });
});

test('the last failed attempt and a last attempt that was cut off end a webhook FAILED in the figures', async () => {
  const { id } = await usher.client();
  const [one, two] = await claimed(id, ['a.example', 'a.example']);
  const ids = [one!, two!].map(({ webhook }) => webhook.id);
  await outcomeStore().record([finish(one!, refused(5)), finish(two!, refused(5))]);
  const [last] = await claim(ids);
  await outcomeStore().record([finish(last!, refused(5))]);
  const expected = { attempts: 3, failures: 3, ended_failed: 1, duration_sum: 15, duration_0: 3 };
  expect((await figures())[' ']).toEqual(expected);
  // The lease of the other one ends without an outcome.
  expect(await claim(ids)).toEqual([]);
  expect(await figures()).toMatchObject({ ' ': { ...expected, ended_failed: 2 } });
});

test('recording again after the answer to the commit was lost counts nothing twice', async () => {
  const { id } = await usher.client();
  const [one, two, three] = await claimed(id, ['a.example', 'a.example', 'a.example']);
  const store = outcomeStore();
  const [success, failure] = [finish(one!, delivered(12)), finish(two!, refused(12))];
  const { dataSource } = usher;
  const createQueryRunner = dataSource.createQueryRunner.bind(dataSource);
  dataSource.createQueryRunner = (...args) => {
    const runner = createQueryRunner(...args);
    const commit = runner.commitTransaction.bind(runner);
    runner.commitTransaction = async () => {
      await commit();
      throw new Error('Connection terminated');
    };
    return runner;
  };
  await expect(store.record([success, failure])).rejects.toThrow('Connection terminated');
  dataSource.createQueryRunner = createQueryRunner;
  // A failure that is recorded again changes its row again; a success does not.
  const states = await store.record([failure]);
  states.push(...(await store.record([success, finish(three!, delivered(12))])));
  expect(states.map(({ status, endedWebhook }) => [status, endedWebhook])).toEqual([
    ['PENDING', false],
    ['SUCCESS', true],
    ['SUCCESS', true],
  ]);
  expect((await figures())[' ']).toMatchObject({ attempts: 3, failures: 1, delivered: 2, duration_sum: 36 });
});

test('an attempt that ends after a later one has ended its webhook counts, and the end counts once', async () => {
  const { id } = await usher.client();
  const [early] = await claimed(id, ['a.example']);
  const [late] = await claim([early!.webhook.id]);
  await outcomeStore().record([finish(late!, delivered(12))]);
  await outcomeStore().record([finish(early!, delivered(12))]);
  expect((await figures())[' ']).toMatchObject({ attempts: 2, delivered: 1 });
});

test('two successes of a webhook that are recorded together count its end once, and report it once', async () => {
  const { id } = await usher.client();
  const [early] = await claimed(id, ['a.example']);
  const [late] = await claim([early!.webhook.id]);
  const states = await outcomeStore().record([finish(early!, delivered(12)), finish(late!, delivered(12))]);
  expect(states.map(({ status, endedWebhook }) => [status, endedWebhook])).toEqual([
    ['SUCCESS', true],
    ['SUCCESS', false],
  ]);
  expect((await figures())[' ']).toMatchObject({ attempts: 2, delivered: 1 });
});

test('nothing is counted of a webhook that was erased meanwhile', async () => {
  const { id } = await usher.client();
  const [one, two] = await claimed(id, ['a.example', 'a.example']);
  await usher.dataSource.manager.delete(Webhook, { id: one!.webhook.id });
  await usher.dataSource.manager.delete(WebhookAttempt, { webhookId: one!.webhook.id });
  await outcomeStore().record([finish(one!, delivered(12)), finish(two!, delivered(12))]);
  expect((await figures())[' ']).toMatchObject({ attempts: 1, delivered: 1 });
});

test('concurrent batches on the same rows lose nothing and do not deadlock', async () => {
  const hosts = ['c.example', 'a.example', 'b.example'];
  const clients = await Promise.all(hosts.map(() => usher.client()));
  const claims = (await Promise.all(clients.map(({ id }) => claimed(id, Array(12).fill(hosts).flat())))).flat();
  const batches = Array.from({ length: 12 }, (_, n) => claims.filter((_, index) => index % 12 === n));
  const faults: string[] = [];
  const { logger } = usher.dataSource;
  usher.dataSource.logger = loggerOf({ logQueryError: (error) => void faults.push(String(error)) });
  await Promise.all(
    // Every batch has its own order, and every store would be a process.
    batches.map((batch, n) =>
      outcomeStore().record(
        (n % 2 ? batch.reverse() : batch).map((one) => finish(one, n % 3 ? delivered(1) : refused(1))),
      ),
    ),
  ).finally(() => (usher.dataSource.logger = logger));
  expect(faults).toEqual([]);
  const all = await figures();
  expect(all[' ']).toMatchObject({ attempts: 108, failures: 36, delivered: 72 });
  for (const { id } of clients)
    for (const host of hosts) expect(all[`${id} ${host}`]).toMatchObject({ attempts: 12, duration_sum: 12 });
});
