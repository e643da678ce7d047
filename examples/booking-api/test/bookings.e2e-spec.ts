import type { INestApplication } from '@nestjs/common';
import { type Client, ClientsService, OrdersService, WebhookService } from 'nest-usher';
import { ApiClient } from './api-client';
import { startApp } from './testing-app';

describe('bookings', () => {
  let app: INestApplication;
  let client: Client;
  let api: ApiClient;

  beforeAll(async () => {
    app = await startApp();
    api = new ApiClient(await app.getUrl());
    const created = await app.get(ClientsService, { strict: false }).create('Aggregator', await api.listen());
    client = created.client;
    api.secret = created.secret;
  });
  afterAll(async () => {
    await app.close();
    api.close();
  });

  it('are for clients with an access token', async () => {
    expect((await api.call('GET', '/bookings/any')).status).toBe(401);
    const response = await fetch(`${await app.getUrl()}/api/auth/token`, {
      method: 'POST',
      headers: { authorization: `Basic ${Buffer.from(`${client.id}:${api.secret}`).toString('base64')}` },
      body: new URLSearchParams({ grant_type: 'client_credentials' }),
    });
    expect(response.status).toBe(200);
    api.token = (await response.json()).access_token;
    expect((await api.call('GET', '/bookings/any')).status).toBe(404);
  });

  it('stay unpaid, and nobody is notified, if the transaction rolls back', async () => {
    const { body: booking } = await api.call('POST', '/bookings', { seats: 'F7', amount: 2100 });
    const payment = await api.call('POST', `/bookings/${booking.orderKey}/payment`, { amount: 1 });
    expect(payment.status).toBe(409);
    const { body: found } = await api.call('GET', `/bookings/${booking.orderKey}`);
    expect(found).toEqual({ ...booking, isPaid: false });
    const order = await app.get(OrdersService, { strict: false }).get(client, booking.orderKey);
    expect(order.status).toBe('PENDING');
    expect(await app.get(WebhookService, { strict: false }).find(booking.orderKey)).toEqual([]);
  });

  it('notify their client when they are paid', async () => {
    const { body: booking } = await api.call('POST', '/bookings', { seats: 'F8,F9', amount: 4200 });
    const notified = api.nextNotification();
    const payment = await api.call('POST', `/bookings/${booking.orderKey}/payment`, { amount: 4200 });
    expect(payment.status).toBe(200);
    const { eventType, data } = await notified;
    expect([eventType, data.key, data.totalAmount]).toEqual(['NOTIFY_ORDER_COMPLETION', booking.orderKey, 4200]);
    // The transaction that rolled back was not notified either.
    expect(api.notifications).toHaveLength(1);
  });
});
