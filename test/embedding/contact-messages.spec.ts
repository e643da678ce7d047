import 'reflect-metadata';
import { Test, type TestingModule } from '@nestjs/testing';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import {
  type ContactMessage,
  ClientsService,
  OrdersModule,
  OrdersService,
  UsherModule,
  WebhookModule,
} from '../../src/index.js';
import { type Backend, createBackend } from '../support/backend.js';
import { eventually } from '../support/eventually.js';
import { answer, TestReceiver } from '../support/receiver.js';
import { COMPLETION, NEW_ORDER } from '../support/usher.js';

let backend: Backend;
let application: TestingModule;
let receiver: TestReceiver;
const messages: ContactMessage[] = [];

beforeAll(async () => {
  backend = await createBackend();
  receiver = await TestReceiver.start();
  const { DATABASE_URL = '', QUEUE_URL, QUEUE_PREFIX, USHER_MASTER_KEYS } = backend.settings;
  const usher = UsherModule.forRoot({
    environment: 'sandbox',
    database: { url: DATABASE_URL },
    queue: { ...(QUEUE_URL && { url: QUEUE_URL }), ...(QUEUE_PREFIX && { prefix: QUEUE_PREFIX }) },
    ...(USHER_MASTER_KEYS && { masterKeys: USHER_MASTER_KEYS }),
    notifyUrls: { allowPrivate: true },
    retry: { retryEveryMs: 500, minIntervalMs: 100, maxAttempts: 1 },
    contactMessages: {
      send: (message) => {
        messages.push(message);
        return Promise.resolve();
      },
    },
  });
  application = await Test.createTestingModule({ imports: [usher, OrdersModule, WebhookModule] }).compile();
  await application.init();
});
afterAll(async () => {
  await application.close();
  await backend.drop();
  receiver.close();
});

test('an application sends the messages to contacts its own way', async () => {
  const [clients, orders] = [application.get(ClientsService), application.get(OrdersService, { strict: false })];
  const { client } = await clients.create('Aggregator', receiver.url);
  await clients.setContact(client.id, 'ops@partner.example');
  receiver.behaviour = answer(503);
  const { key } = await orders.create(client, NEW_ORDER);
  await orders.complete(key, COMPLETION);
  const [message] = await eventually('the message is sent', () => messages.length > 0 && messages);
  const { host } = new URL(receiver.url);
  const error = 'the receiver answered 503';
  expect(message).toMatchObject({
    id: expect.stringMatching(/^[0-9a-f]{20}-1$/),
    clientId: client.id,
    clientName: 'Aggregator',
    contact: 'ops@partner.example',
    subject: `[Usher sandbox] Notifications to ${host} do not arrive`,
    hosts: [{ host, state: 'failing', since: expect.stringMatching(/Z$/), recoveredAt: null, error, failed: 1 }],
  });
});
