import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { parser } from '@prometheus-io/lezer-promql';
import { parse } from 'yaml';
import { eventually } from '../../support/eventually.js';
import { answer, TestReceiver } from '../../support/receiver.js';
import { basic, TestUsher } from '../../support/usher.js';

const OPERATOR = { authorization: basic('ops', 'ops') };
const DOCUMENT = 'docs/operations/metrics.md';
const RULES = 'docs/operations/alerts.yml';

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
  };
  expect(Object.fromEntries(Object.keys(samples).map((sample) => [sample, grown(sample)]))).toEqual(samples);
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

describe('every metric', () => {
  const typesIn = (text: string): string[] => [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name = '']) => name);

  test(`of Usher’s is documented in ${DOCUMENT}, and every documented metric exists`, async () => {
    const { body } = await usher.request('GET', '/ops/metrics', OPERATOR);
    const existing = typesIn(String(body.text));
    const documented = [...readFileSync(DOCUMENT, 'utf8').matchAll(/`((?:usher|process|nodejs)_\w+)`/g)].map(
      ([, name = '']) => name,
    );
    expect(documented.filter((name) => !existing.includes(name))).toEqual([]);
    expect(existing.filter((name) => name.startsWith('usher_') && !documented.includes(name))).toEqual([]);
  });

  test(`used in a rule of ${RULES} is in a scrape, and every expression is valid PromQL`, async () => {
    const names = namesIn(await scrape());
    const { groups } = parse(readFileSync(RULES, 'utf8')) as { groups: { rules: { alert: string; expr: string }[] }[] };
    const rules = groups.flatMap((group) => group.rules);
    const missing = rules.flatMap(({ alert, expr }) => {
      const used = metricsIn(expr);
      expect({ alert, used: used.length > 0 }).toEqual({ alert, used: true });
      return used.filter((name) => !names.includes(name));
    });
    expect(missing).toEqual([]);
  });
});

/** The metrics of an expression. Throws if it is not PromQL. */
function metricsIn(expression: string): string[] {
  const found: string[] = [];
  parser.parse(expression).iterate({
    enter({ type, from, to, node }) {
      if (type.isError) throw new Error(`not PromQL at ${from}: ${expression}`);
      if (type.name === 'Identifier' && node.parent?.name === 'VectorSelector') found.push(expression.slice(from, to));
    },
  });
  return found;
}

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
