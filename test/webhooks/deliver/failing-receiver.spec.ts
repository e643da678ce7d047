import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Client } from '../../../src/clients/client.entity.js';
import { refusingUrl } from '../../support/ports.js';
import {
  answer,
  type Behaviour,
  endless,
  hang,
  late,
  redirectTo,
  reset,
  TestReceiver,
} from '../../support/receiver.js';
import { SHORT_TIMEOUT, type TestClient, TestUsher } from '../../support/usher.js';

const MIN_INTERVAL_MS = 500;
const RETRY_EVERY_MS = 1_000;
const TIMEOUT_MS = 3_000;

let usher: TestUsher;
let client: TestClient;
let bystander: TestReceiver;
const receivers: TestReceiver[] = [];

beforeAll(async () => {
  usher = await TestUsher.start(SHORT_TIMEOUT);
  client = await usher.client();
  bystander = await receiverThat(answer(200));
});
afterAll(async () => {
  await usher.stop();
  for (const receiver of receivers) receiver.close();
});

async function receiverThat(behaviour: Behaviour): Promise<TestReceiver> {
  const receiver = await TestReceiver.start();
  receiver.behaviour = behaviour;
  receivers.push(receiver);
  return receiver;
}

async function notified(behaviour: Behaviour) {
  const receiver = await receiverThat(behaviour);
  return { receiver, key: await client.completedOrder({ notifyUrl: receiver.url }) };
}

/** The first retry run at or after the minimum interval has passed (specification 8). */
const earliestAfter = (ms: number): number => Math.ceil((ms + MIN_INTERVAL_MS) / RETRY_EVERY_MS) * RETRY_EVERY_MS;

function expectSpacing(moments: number[]): void {
  for (const [index, moment] of moments.slice(1).entries()) {
    expect(moment).toBeGreaterThanOrEqual(earliestAfter(moments[index]!));
  }
}

describe('a receiver that never accepts gets five attempts, spaced by the schedule, and the webhook ends FAILED', () => {
  const cases: [name: string, behaviour: () => Behaviour, logged: object][] = [
    ['answers 500', () => answer(500), { responseStatus: 500, error: 'the receiver answered 500', phase: 'body' }],
    ['answers 404', () => answer(404), { responseStatus: 404, error: 'the receiver answered 404', phase: 'body' }],
    ['redirects', () => redirectTo(bystander.url), { responseStatus: 302, error: 'the receiver answered 302' }],
    ['resets the connection', () => reset, { responseStatus: null, error: 'connection reset', phase: 'headers' }],
    ['hangs', () => hang, { responseStatus: null, error: 'no answer in time (reached: headers)', phase: 'headers' }],
    [
      'answers 200 too late',
      () => late(TIMEOUT_MS + 300),
      { responseStatus: null, error: 'no answer in time (reached: headers)' },
    ],
  ];

  test.concurrent.each(cases)('one that %s', async (_name, behaviour, logged) => {
    const { receiver, key } = await notified(behaviour());
    const webhook = await usher.webhook(key, 'FAILED');
    expect(webhook).toMatchObject({ attemptCount: 5, nextAttemptAt: null, finishedAt: expect.any(String) });
    expect(webhook.log).toHaveLength(5);
    for (const [index, attempt] of webhook.log.entries()) {
      expect(attempt).toMatchObject({ number: index + 1, durationMs: expect.any(Number), ...logged });
    }
    expect(receiver.of(key)).toHaveLength(5);
    expectSpacing(receiver.of(key).map(({ at }) => at));
  });

  test.concurrent('one that refuses the connection', async () => {
    const key = await client.completedOrder({ notifyUrl: await refusingUrl() });
    const { log, attemptCount } = await usher.webhook(key, 'FAILED');
    expect(attemptCount).toBe(5);
    expectSpacing(log.map(({ startedAt }) => Date.parse(startedAt)));
    for (const attempt of log) {
      expect(attempt).toMatchObject({ responseStatus: null, error: 'connection refused', phase: 'connect' });
    }
  });
});

test('one with a longer name than DNS has, which 0.2.0 accepted, does not hold its slot for ever', async () => {
  const { id } = client;
  const notifyUrl = `https://${'a.'.repeat(150)}example/`;
  await usher.dataSource.manager.update(Client, { id }, { notifyUrl });
  const key = await client.completedOrder();
  expect(await usher.webhook(key, 'FAILED')).toMatchObject({ attemptCount: 5, notifyUrl });
});

const busy =
  (status: number, retryAfter: string): Behaviour =>
  (response) =>
    void response.writeHead(status, { 'retry-after': retryAfter }).end();

test.each([429, 503])(
  'a receiver that answers %i with Retry-After gets its next attempt after that time',
  async (status) => {
    const { key, receiver } = await notified((response, arrival, nth) =>
      (nth === 1 ? busy(status, '2') : answer(200))(response, arrival, nth),
    );
    const { log } = await usher.webhook(key, 'SUCCESS');
    expect(log[0]).toMatchObject({ error: `the receiver answered ${status} and asked to wait 2 s` });
    const [first, second] = receiver.of(key).map(({ at }) => at);
    expect(second).toBeGreaterThanOrEqual(Math.ceil((first! + 2_000) / RETRY_EVERY_MS) * RETRY_EVERY_MS);
  },
);

test('a receiver that asks to wait for an hour gets its five attempts all the same', async () => {
  const { key, receiver } = await notified(busy(503, '3600'));
  expect(await usher.webhook(key, 'FAILED')).toMatchObject({ attemptCount: 5 });
  const moments = receiver.of(key).map(({ at }) => at);
  expectSpacing(moments);
  // Two retry runs later than the schedule.
  for (const [index, at] of moments.slice(1).entries())
    expect(at).toBeGreaterThanOrEqual(earliestAfter(moments[index]!) + 2 * RETRY_EVERY_MS);
});

test('a redirect is not followed', async () => {
  const { key } = await notified(redirectTo(bystander.url));
  await usher.webhook(key, 'FAILED');
  expect(bystander.of(key)).toHaveLength(0);
});

test('an attempt that times out lasts for the whole timeout', async () => {
  const { key, receiver } = await notified((response, arrival, nth) =>
    (nth === 1 ? hang : answer(200))(response, arrival, nth),
  );
  const { log } = await usher.webhook(key, 'SUCCESS');
  expect(log.map(({ responseStatus }) => responseStatus)).toEqual([null, 200]);
  expect(log[0]!.durationMs).toBeGreaterThanOrEqual(TIMEOUT_MS);
  expect(receiver.of(key)[1]!.at).toBeGreaterThanOrEqual(earliestAfter(Date.parse(log[0]!.startedAt) + TIMEOUT_MS));
});

test('200 with an endless body is SUCCESS at once', async () => {
  const { key, receiver } = await notified(endless);
  const { attemptCount, log } = await usher.webhook(key, 'SUCCESS');
  expect(attemptCount).toBe(1);
  expect(log[0]).toMatchObject({ number: 1, responseStatus: 200, error: null, phase: 'body' });
  expect(log[0]!.responseSnippet).toMatch(/^x{1024}$/);
  expect(receiver.of(key)).toHaveLength(1);
});

test('a receiver that fails twice and then answers 204 is notified a third time and never again', async () => {
  const { key, receiver } = await notified((response, arrival, nth) =>
    answer(nth < 3 ? 500 : 204)(response, arrival, nth),
  );
  const { attemptCount, log } = await usher.webhook(key, 'SUCCESS');
  expect(attemptCount).toBe(3);
  expect(log.map(({ responseStatus }) => responseStatus)).toEqual([500, 500, 204]);
  // A second order needs as many retry runs, so a leftover job of the first one would have run by then.
  await usher.webhook((await notified(answer(500))).key, 'FAILED');
  expect(receiver.of(key)).toHaveLength(3);
});

test('the first attempt does not wait for a retry run', async () => {
  const usherWithRareRuns = await TestUsher.start({ WEBHOOK_RETRY_EVERY: '24h' });
  try {
    const hurried = await usherWithRareRuns.client((await receiverThat(answer(200))).url);
    const key = await hurried.completedOrder();
    expect((await usherWithRareRuns.webhook(key, 'SUCCESS')).attemptCount).toBe(1);
  } finally {
    await usherWithRareRuns.stop();
  }
});
