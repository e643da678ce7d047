import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { OrdersService } from '../../../src/orders/orders.service.js';
import { Webhook } from '../../../src/webhooks/webhook.entity.js';
import { TestReceiver } from '../../support/receiver.js';
import { COMPLETION, type TestClient, TestUsher } from '../../support/usher.js';

let usher: TestUsher;
let receiver: TestReceiver;
let client: TestClient;

beforeAll(async () => {
  usher = await TestUsher.shared();
  receiver = await TestReceiver.start();
  client = await usher.client(receiver.url);
});
afterAll(() => void receiver.close());

describe('an order completed again with equal values', () => {
  test('gets the same answer and is notified once', async () => {
    const key = await client.order();
    const first = await client.complete(key);
    await usher.webhook(key, 'SUCCESS');
    const second = await client.complete(key);
    expect(second).toMatchObject({ status: 200, body: first.body });
    expect(await usher.webhooks.find(key)).toHaveLength(1);
    expect(receiver.of(key)).toHaveLength(1);
  });

  test('gets the same answer in twenty concurrent requests and is notified once', async () => {
    const key = await client.order();
    const answers = await Promise.all(Array.from({ length: 20 }, () => client.complete(key)));
    for (const { status, body } of answers) expect({ status, body }).toEqual({ status: 200, body: answers[0]!.body });
    await usher.webhook(key, 'SUCCESS');
    expect(await usher.webhooks.find(key)).toHaveLength(1);
    expect(receiver.of(key)).toHaveLength(1);
  });
});

test('an order whose reference was delivered before it is completed is not notified again', async () => {
  const key = await client.order();
  await usher.webhooks.notify({ referenceId: key, clientId: client.id, data: { key } });
  const delivered = await usher.webhook(key, 'SUCCESS');
  expect(await client.complete(key)).toMatchObject({ status: 200, body: COMPLETION });
  expect(await usher.webhooks.find(key)).toMatchObject([{ id: delivered.id }]);
  expect(receiver.of(key)).toHaveLength(1);
});

test('an order without a Notify URL of its own is notified at the one that the client has at the completion', async () => {
  const mover = await usher.client(`${receiver.url}/before`);
  const [key, own] = [await mover.order(), await mover.order({ notifyUrl: `${receiver.url}/own` })];
  await usher.clients.setNotifyUrl(mover.id, `${receiver.url}/after`);
  for (const one of [key, own]) await mover.complete(one);
  expect(await usher.webhook(key, 'SUCCESS')).toMatchObject({ notifyUrl: `${receiver.url}/after` });
  expect(await usher.webhook(own, 'SUCCESS')).toMatchObject({ notifyUrl: `${receiver.url}/own` });
  expect(receiver.of(key)).toHaveLength(1);
});

test('an order is completed and notified whatever request id an application passes', async () => {
  const orders = usher.running.app.get(OrdersService, { strict: false });
  const key = await client.order();
  const requestId = `Root=1-67891233-abcdef012345678912345678;\0${'é'.repeat(64)}`;
  expect(await orders.complete(key, COMPLETION, { requestId })).toMatchObject({ status: 'COMPLETED' });
  await usher.webhook(key, 'SUCCESS');
  const stored = await usher.dataSource.manager.findOneByOrFail(Webhook, { referenceId: key });
  expect(stored.requestId).toBe(`Root=1-67891233-abcdef012345678912345678;${'?'.repeat(23)}`);
});

describe('an order completed again with other values', () => {
  test.each([
    ['bookingId', { ...COMPLETION, bookingId: 'BK-2' }],
    ['transactionId', { ...COMPLETION, transactionId: 'tx-1' }],
    ['qrCode', { ...COMPLETION, qrCode: 'QR-2' }],
    ['no qrCode', { bookingId: COMPLETION.bookingId, transactionId: COMPLETION.transactionId }],
  ])('gets 409 and is not changed: %s', async (_name, other) => {
    const key = await client.completedOrder();
    expect((await client.complete(key, other)).status).toBe(409);
    expect((await client.call('GET', `/movie-orders/${key}`)).body).toMatchObject(COMPLETION);
    expect(await usher.webhooks.find(key)).toHaveLength(1);
  });

  test('concurrently: one request succeeds, and only its values are sent', async () => {
    const key = await client.order();
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, index) => client.complete(key, { ...COMPLETION, bookingId: `BK-${index}` })),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array<number>(9).fill(409)]);
    const winner = answers.find(({ status }) => status === 200)!.body.bookingId;
    const [arrival] = await receiver.waitFor(key);
    expect(JSON.parse(arrival!.rawBody.toString())).toMatchObject({ data: { bookingId: winner } });
  });
});
