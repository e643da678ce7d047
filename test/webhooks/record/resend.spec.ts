import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { answer, hang, TestReceiver } from '../../support/receiver.js';
import { ONE_ATTEMPT, type TestClient, TestUsher } from '../../support/usher.js';

const MIN_INTERVAL_MS = 3_000;

let usher: TestUsher;
let receiver: TestReceiver;
let client: TestClient;

beforeAll(async () => {
  usher = await TestUsher.start({ ...ONE_ATTEMPT, WEBHOOK_RETRY_MIN_INTERVAL: `${MIN_INTERVAL_MS}ms` });
  receiver = await TestReceiver.start();
  client = await usher.client(receiver.url);
});
afterAll(async () => {
  receiver.close();
  await usher.stop();
});

async function failedWebhook(more: object = {}) {
  receiver.behaviour = answer(500);
  const key = await client.completedOrder(more);
  const webhook = await usher.webhook(key, 'FAILED');
  receiver.behaviour = answer(200);
  return { key, webhook };
}

test('a resend is a new webhook with the id of the FAILED one, and keeps the minimum interval after its last attempt', async () => {
  const { key, webhook } = await failedWebhook();
  const resent = await usher.webhooks.resend(webhook.id);
  expect(resent).toMatchObject({ referenceId: key, status: 'PENDING', attemptCount: 0, resendOf: webhook.id });
  expect((await usher.webhook(key, 'SUCCESS')).id).toBe(resent.id);
  const [first, second] = receiver.of(key);
  expect(second!.at - first!.at).toBeGreaterThanOrEqual(MIN_INTERVAL_MS);
  expect(second!.rawBody.equals(first!.rawBody)).toBe(true);
  expect(second!.headers['x-webhook-attempt']).toBe('1');
  expect(receiver.of(key)).toHaveLength(2);
});

test('a resend goes to the order\u2019s own Notify URL if it had one', async () => {
  const { key, webhook } = await failedWebhook({ notifyUrl: `${receiver.url}/own` });
  expect((await usher.webhooks.resend(webhook.id)).notifyUrl).toBe(`${receiver.url}/own`);
  await usher.webhook(key, 'SUCCESS');
});

test('a resend goes to the client\u2019s currently registered Notify URL if the order had none', async () => {
  const { key, webhook } = await failedWebhook();
  await usher.clients.setNotifyUrl(client.id, `${receiver.url}/moved`);
  expect((await usher.webhooks.resend(webhook.id)).notifyUrl).toBe(`${receiver.url}/moved`);
  await usher.webhook(key, 'SUCCESS');
});

test('one of several concurrent resends succeeds, and the others get 409', async () => {
  const { key, webhook } = await failedWebhook();
  const settled = await Promise.allSettled(Array.from({ length: 10 }, () => usher.webhooks.resend(webhook.id)));
  const refused = settled.filter(({ status }) => status === 'rejected') as PromiseRejectedResult[];
  expect(refused.map(({ reason }) => (reason as { status: number }).status)).toEqual(Array(9).fill(409));
  await usher.webhook(key, 'SUCCESS');
  expect(receiver.of(key)).toHaveLength(2);
});

test('a PENDING or SUCCESS webhook cannot be resent: 409', async () => {
  receiver.behaviour = hang;
  const pending = await usher.webhook(await client.completedOrder(), 'PENDING');
  await expect(usher.webhooks.resend(pending.id)).rejects.toMatchObject({ status: 409 });
  receiver.behaviour = answer(200);
  const delivered = await usher.webhook(await client.completedOrder(), 'SUCCESS');
  await expect(usher.webhooks.resend(delivered.id)).rejects.toMatchObject({ status: 409 });
});

test('a FAILED webhook cannot be resent after a later webhook of its order was delivered: 409', async () => {
  const { key, webhook } = await failedWebhook();
  await usher.webhooks.resend(webhook.id);
  await usher.webhook(key, 'SUCCESS');
  await expect(usher.webhooks.resend(webhook.id)).rejects.toMatchObject({ status: 409 });
});

test('the minimum interval is kept when a webhook fails while the next one of its reference is recorded', async () => {
  receiver.behaviour = (response) => void setTimeout(() => response.writeHead(500).end(), 300);
  const key = await client.completedOrder();
  const [first] = await receiver.waitFor(key);
  receiver.behaviour = answer(200);
  const request = { referenceId: key, clientId: client.id, data: { key } };
  // Calls notify repeatedly around the time at which the first webhook fails.
  for (let asked = await usher.webhooks.notify(request); !asked.isNew;) {
    asked = await usher.webhooks.notify(request);
  }
  await usher.webhook(key, 'SUCCESS');
  expect(receiver.of(key)[1]!.at - first!.at).toBeGreaterThanOrEqual(MIN_INTERVAL_MS);
});

test('the minimum interval is kept when an order is completed whose reference was notified before and failed', async () => {
  receiver.behaviour = answer(500);
  const key = await client.order();
  await usher.webhooks.notify({ referenceId: key, clientId: client.id, data: { key } });
  await usher.webhook(key, 'FAILED');
  receiver.behaviour = answer(200);
  await client.complete(key);
  await usher.webhook(key, 'SUCCESS');
  const [first, second] = receiver.of(key);
  expect(second!.at - first!.at).toBeGreaterThanOrEqual(MIN_INTERVAL_MS);
});

test('a webhook that does not exist cannot be resent: 404', async () => {
  await expect(usher.webhooks.resend('s0000000000000000000000')).rejects.toMatchObject({ status: 404 });
});
