import type { INestApplication } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { ClientsService, WebhookModule } from 'nest-usher';
import { issueAccessToken, RecordingWebhookModule, RecordingWebhooks } from 'nest-usher/testing';
import { AppModule } from '../src/app.module';
import { ApiClient } from './api-client';
import { startApp } from './testing-app';

/** RecordingWebhookModule records the requests to notify, and sends nothing. */
describe('a payment', () => {
  let app: INestApplication;
  let api: ApiClient;
  let webhooks: RecordingWebhooks;

  beforeAll(async () => {
    process.env.USHER_DELIVER = 'false';
    const builder = Test.createTestingModule({ imports: [AppModule] });
    app = await startApp(builder.overrideModule(WebhookModule).useModule(RecordingWebhookModule));
    webhooks = app.get(RecordingWebhooks, { strict: false });
    api = new ApiClient(await app.getUrl());
    const clients = app.get(ClientsService, { strict: false });
    const { client } = await clients.create('Aggregator', 'https://aggregator.example/notify');
    api.token = await issueAccessToken(app, client.id);
  });
  afterAll(() => app.close());

  async function pay(amount: number): Promise<string> {
    const { body } = await api.call('POST', '/bookings', { seats: 'F7', amount: 2100 });
    await api.call('POST', `/bookings/${body.orderKey}/payment`, { amount });
    return body.orderKey;
  }

  it('requests one notification', async () => {
    const orderKey = await pay(2100);
    expect(webhooks.requests.map(({ referenceId }) => referenceId)).toEqual([orderKey]);
  });

  it('requests none if its transaction rolls back', async () => {
    const orderKey = await pay(1);
    expect(webhooks.rolledBack.map(({ referenceId }) => referenceId)).toEqual([orderKey]);
    expect(await webhooks.find(orderKey)).toEqual([]);
  });
});
