import { getDataSourceToken } from '@nestjs/typeorm';
import type { DataSource } from 'typeorm';
import 'reflect-metadata';
import { Test, type TestingModule } from '@nestjs/testing';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import {
  ClientsModule,
  ClientsService,
  OrdersModule,
  OrdersService,
  WebhookModule,
  WebhookService,
} from '../../src/index.js';
import { loadConfig } from '../../src/server/settings/settings.js';
import { usherModuleFor } from '../../src/usher.module.js';
import { RecordingWebhookModule, RecordingWebhooks } from '../../src/testing/index.js';
import { type Backend, createBackend } from '../support/backend.js';
import { COMPLETION, NEW_ORDER } from '../support/usher.js';

let backend: Backend;
let application: TestingModule;

beforeAll(async () => {
  backend = await createBackend();
  const usher = usherModuleFor(loadConfig({ ...backend.settings, USHER_ROLE: 'api' }));
  application = await Test.createTestingModule({ imports: [usher, ClientsModule, OrdersModule, WebhookModule] })
    .overrideModule(WebhookModule)
    .useModule(RecordingWebhookModule)
    .compile();
  await application.init();
});
afterAll(async () => {
  await application.close();
  await backend.drop();
});

test('RecordingWebhookModule instead of WebhookModule also records the notifications of OrdersModule', async () => {
  const [clients, orders] = [application.get(ClientsService), application.get(OrdersService)];
  const { client } = await clients.create('Aggregator', 'https://partner.example/notify');
  const { key } = await orders.create(client, NEW_ORDER, { ownerId: 'member-1' });
  await orders.complete(key, COMPLETION, { requestId: 'request-1' });
  const recorded = application.get(RecordingWebhooks, { strict: false });
  expect(recorded.requests).toEqual([
    expect.objectContaining({
      referenceId: key,
      clientId: client.id,
      data: expect.objectContaining({ key }),
      ownerId: 'member-1',
      requestId: 'request-1',
    }),
  ]);
  await recorded.end(key, 'SUCCESS');
  const webhooks = application.get<RecordingWebhooks>(WebhookService, { strict: false });
  expect(await webhooks.find(key)).toEqual([
    expect.objectContaining({ referenceId: key, ownerId: 'member-1', status: 'SUCCESS' }),
  ]);
});

test('RecordingWebhooks lists, resends, and tells which requests were rolled back', async () => {
  const recorded = application.get(RecordingWebhooks, { strict: false });
  const dataSource = application.get<DataSource>(getDataSourceToken('usher'), { strict: false });
  const request = (referenceId: string) => ({ referenceId, clientId: 'aggregator', data: {} });

  const rolledBack = dataSource.transaction(async (manager) => {
    expect((await recorded.notify(request('Rolled-back'), { manager })).isNew).toBe(true);
    throw new Error('no seats');
  });
  await expect(rolledBack).rejects.toThrow('no seats');
  expect(recorded.rolledBack.map(({ referenceId }) => referenceId)).toEqual(['Rolled-back']);
  expect(await recorded.find('Rolled-back')).toEqual([]);

  const { webhook } = await recorded.notify(request('Failed-1'));
  expect(await recorded.notify(request('Failed-1'))).toEqual({ webhook, isNew: false });
  await expect(recorded.resend(webhook.id)).rejects.toMatchObject({ status: 409 });
  await recorded.end('Failed-1', 'FAILED');
  const resent = await recorded.resend(webhook.id);
  expect(resent).toMatchObject({ referenceId: 'Failed-1', status: 'PENDING', resendOf: webhook.id });
  expect(await recorded.list({ referenceId: 'Failed-1' })).toEqual([
    resent,
    expect.objectContaining({ id: webhook.id }),
  ]);
});
