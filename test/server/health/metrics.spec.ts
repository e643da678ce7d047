import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { shownCount } from '../../../src/server/console/overview/problems.js';
import { eventually } from '../../support/eventually.js';
import { answer, TestReceiver } from '../../support/receiver.js';
import { basic, TestUsher } from '../../support/usher.js';

const OPERATOR = { authorization: basic('ops', 'ops') };

let usher: TestUsher;
let receiver: TestReceiver;
beforeAll(async () => {
  usher = await TestUsher.start({ WEBHOOK_MAX_ATTEMPTS: '2' });
  receiver = await TestReceiver.start();
});
afterAll(async () => {
  await usher.stop();
  receiver.close();
});

/** Samples by name and labels, as in the text: `name{label="value"}`. */
async function scrape(of = usher): Promise<Map<string, number>> {
  const { status, headers, body } = await of.request('GET', '/ops/metrics', OPERATOR);
  expect([status, headers.get('content-type')]).toEqual([200, 'text/plain; version=0.0.4; charset=utf-8']);
  const lines = String(body.text)
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]),
  );
}

const nameOf = (sample: string): string => sample.replace(/\{.*/, '');
const namesIn = (samples: Map<string, number>): string[] => [...new Set([...samples.keys()].map(nameOf))];

test('refused credentials are counted from the start, so that an alert sees the first ones', async () => {
  const fresh = await TestUsher.start();
  const samples = await scrape(fresh);
  await fresh.stop();
  for (const error of ['invalid_client', 'slow_down'])
    expect(samples.get(`usher_token_refusals_total{endpoint="/auth/token",error="${error}"}`)).toBe(0);
});

test('a closed server is freed, although the process that it was in is observed on', async () => {
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  const closedServer = async (): Promise<WeakRef<object>> => {
    const server = await TestUsher.start();
    await server.stop();
    return new WeakRef(server.dataSource);
  };
  const closed = await closedServer();
  // Passport keeps the strategies of the last one.
  await closedServer();
  await eventually('it is freed', () => {
    collectGarbage();
    return closed.deref() === undefined;
  });
});

test('a count of due notifications that ends at 100,000 says so', async () => {
  const { body } = await usher.request('GET', '/ops/metrics', OPERATOR);
  expect(body.text).toContain(
    'usher_webhooks_due Pending webhooks whose next attempt is due; 100000 means this many or more.',
  );
  expect([99_999, 100_000].map(shownCount)).toEqual(['99999', '100,000 or more']);
});

test('tokens, refusals, attempts and the time to success are counted', async () => {
  const client = await usher.client(receiver.url);
  const before = await scrape();
  const { body } = await client.token();
  await client.refresh(body.refresh_token);
  await client.refresh('garbage');
  receiver.behaviour = (response, arrival, nth) => answer(nth === 1 ? 500 : 200)(response, arrival, nth);
  await usher.webhook(await client.completedOrder(), 'SUCCESS');
  receiver.behaviour = answer(503);
  const { id, referenceId } = await usher.webhook(await client.completedOrder(), 'FAILED');
  receiver.behaviour = answer(200);
  await usher.webhooks.resend(id);
  await usher.webhook(referenceId, 'SUCCESS');
  const grown = await eventually('the last attempt is counted', async () => {
    const after = await scrape();
    const difference = (sample: string): number => (after.get(sample) ?? 0) - (before.get(sample) ?? 0);
    return difference('usher_webhooks_finished_total{status="SUCCESS"}') === 2 ? difference : null;
  });
  const samples = {
    'usher_tokens_issued_total{endpoint="/auth/token"}': 2,
    'usher_tokens_issued_total{endpoint="/auth/refresh"}': 1,
    'usher_token_refusals_total{endpoint="/auth/refresh",error="invalid_grant"}': 1,
    'usher_delivery_attempts_total{outcome="delivered"}': 2,
    'usher_delivery_attempts_total{outcome="refused"}': 3,
    'usher_delivery_attempt_duration_seconds_count{outcome="refused"}': 3,
    'usher_webhooks_finished_total{status="SUCCESS"}': 2,
    'usher_webhooks_finished_total{status="FAILED"}': 1,
    // The resend is not included.
    usher_delivery_latency_seconds_count: 1,
    usher_orders_created_total: 2,
    usher_orders_completed_total: 2,
    [`usher_client_failed_attempts{client="${client.id}"}`]: 3,
  };
  expect(Object.fromEntries(Object.keys(samples).map((sample) => [sample, grown(sample)]))).toEqual(samples);
});

test('at most ten clients have a figure of their own: those whose attempts fail most', async () => {
  receiver.behaviour = answer(503);
  const clients = await Promise.all(Array.from({ length: 12 }, () => usher.client(receiver.url)));
  const often = clients.at(-1)!;
  const orders = [...clients, often, often].map((client) => client.completedOrder());
  for (const key of await Promise.all(orders)) await usher.webhook(key, 'FAILED');
  receiver.behaviour = answer(200);
  const figures = await eventually('the most failing client is counted', async () => {
    const samples = [...(await scrape())].filter(([sample]) => sample.startsWith('usher_client_failed_attempts'));
    return new Map(samples).get(`usher_client_failed_attempts{client="${often.id}"}`) === 6 ? samples : null;
  });
  expect(figures).toHaveLength(10);
});

test('due webhooks and waiting jobs are shown', async () => {
  const client = await usher.client(receiver.url);
  await usher.queue.pause();
  await client.completedOrder();
  const wanted = {
    usher_webhooks_due: 1,
    'usher_queue_paused{queue="usher-webhook"}': 1,
    'usher_queue_jobs{queue="usher-webhook",state="waiting"}': 1,
  };
  const samples = await eventually('the backlog shows', async () => {
    const now = await scrape();
    return Object.entries(wanted).every(([sample, value]) => now.get(sample) === value) ? now : null;
  });
  expect(samples.get('usher_webhooks_oldest_due_age_seconds')).toBeGreaterThan(0);
  await usher.queue.resume();
});

test('requests to unknown paths share one label, so that a scanner adds no series', async () => {
  await usher.request('GET', '/no-such-path', {});
  const refused =
    /^usher_http_request_duration_seconds_count\{method="GET",route="(none|.*no-such-path)",status="4xx"\}$/;
  const found = await eventually('the request is counted', async () => {
    const samples = [...(await scrape()).keys()].filter((sample) => refused.test(sample));
    return samples.length > 0 ? samples : null;
  });
  expect(found).toEqual(['usher_http_request_duration_seconds_count{method="GET",route="none",status="4xx"}']);
});

describe('a worker without the API', () => {
  let worker: TestUsher;
  beforeAll(async () => {
    worker = await TestUsher.start({ USHER_ROLE: 'worker' });
  });
  afterAll(() => worker.stop());

  test('serves metrics and health', async () => {
    expect(namesIn(await scrape(worker))).toContain('usher_delivery_attempts_total');
    for (const path of ['/health/live', '/health/ready'])
      expect((await worker.request('GET', path, {})).status).toBe(200);
    expect((await worker.request('GET', '/ops/metrics', {})).status).toBe(401);
  });

  test('answers a scrape while its database hangs, without the gauges of the database', async () => {
    const runner = worker.dataSource.createQueryRunner();
    const isPostgres = worker.dataSource.options.type === 'postgres';
    await runner.query(isPostgres ? 'BEGIN' : 'LOCK TABLES usher_webhook WRITE');
    if (isPostgres) await runner.query('LOCK TABLE usher_webhook IN ACCESS EXCLUSIVE MODE');
    const hanging = await eventually('the database hangs', async () => {
      const samples = await scrape(worker);
      return samples.get('usher_database_up') === 0 ? samples : null;
    });
    expect(hanging.has('usher_webhooks_due')).toBe(false);
    expect(hanging.has('usher_webhooks_oldest_due_age_seconds')).toBe(false);
    expect(hanging.get('process_cpu_seconds_total')).toBeGreaterThan(0);
    await runner.query(isPostgres ? 'ROLLBACK' : 'UNLOCK TABLES');
    await runner.release();
    const back = await eventually('the database is back', async () => {
      const samples = await scrape(worker);
      return samples.get('usher_database_up') === 1 ? samples : null;
    });
    expect(back.get('usher_webhooks_due')).toBe(0);
  });
});
