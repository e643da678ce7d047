import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { WebhookHealth } from '../../../src/webhooks/webhook-health.js';
import { Webhook, WebhookAttempt } from '../../../src/webhooks/webhook.entity.js';
import { usherJson } from '../../support/process.js';
import { answer, TestReceiver } from '../../support/receiver.js';
import { ONE_ATTEMPT, type TestClient, TestUsher } from '../../support/usher.js';

let usher: TestUsher;
let receiver: TestReceiver;

beforeAll(async () => {
  usher = await TestUsher.start(ONE_ATTEMPT);
  receiver = await TestReceiver.start();
});
afterAll(async () => {
  await usher.stop();
  receiver.close();
});

async function healthOf(client: TestClient): Promise<WebhookHealth['hosts']> {
  const { status, body } = await client.call('GET', '/webhooks/health');
  expect(status).toBe(200);
  return WebhookHealth.strict().parse(body).hosts;
}

async function delivered(client: TestClient, status: number): Promise<string> {
  receiver.behaviour = answer(status);
  const { id } = await usher.webhook(await client.completedOrder(), status < 300 ? 'SUCCESS' : 'FAILED');
  return id;
}

const host = (): string => new URL(receiver.url).host;

test('a client without notifications has no hosts', async () => {
  expect(await healthOf(await usher.client())).toEqual([]);
});

test('failures in a row count since the last success, and show the last diagnosis', async () => {
  const client = await usher.client(receiver.url);
  await delivered(client, 500);
  await delivered(client, 200);
  expect(await healthOf(client)).toMatchObject([{ host: host(), failuresInARow: 0, oldestPendingAt: null }]);
  await delivered(client, 500);
  await delivered(client, 404);
  const [health] = await healthOf(client);
  expect(health).toMatchObject({
    failuresInARow: 2,
    lastDiagnosis: { code: 'not-found' },
    answerTimes: { attemptCount: 4 },
  });
  expect(Date.parse(health!.lastFailureAt!)).toBeGreaterThan(Date.parse(health!.lastSuccessAt!));
  expect(await usherJson(usher.settings, ['webhook', 'health', client.id])).toEqual({ hosts: [health] });
});

test('answer times are the median and the 95th percentile of attempts that were answered', async () => {
  const client = await usher.client(receiver.url);
  const id = await delivered(client, 200);
  const { manager } = usher.dataSource;
  const first = await manager.findOneByOrFail(WebhookAttempt, { webhookId: id });
  await manager.delete(WebhookAttempt, { webhookId: id });
  const times = Array.from({ length: 20 }, (_, index) => 10 * (index + 1));
  const rows = times.map((durationMs, number) => ({ ...first, number: number + 1, durationMs }));
  const unanswered = { ...first, number: 21, durationMs: 30_000, responseStatus: null, error: 'no answer in time' };
  await manager.insert(WebhookAttempt, [...rows, unanswered]);
  const [health] = await healthOf(client);
  expect(health).toMatchObject({ answerTimes: { attemptCount: 20, medianMs: 100, p95Ms: 190 } });
});

test('the oldest pending notification is shown for its host, and not those of other clients', async () => {
  const [client, other] = [await usher.client(receiver.url), await usher.client(receiver.url)];
  const ids = [await delivered(client, 200), await delivered(client, 200), await delivered(other, 200)];
  const pending = { status: 'PENDING', nextAttemptAt: Date.parse('2126-01-01T00:00:00Z'), finishedAt: null } as const;
  for (const id of ids) await usher.dataSource.manager.update(Webhook, { id }, pending);
  const { createdAt } = await usher.dataSource.manager.findOneByOrFail(Webhook, { id: ids[0]! });
  expect(await healthOf(client)).toMatchObject([{ oldestPendingAt: new Date(createdAt).toISOString() }]);
});
