import 'reflect-metadata';
import { type INestApplication, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import {
  AuthModule,
  CertificationRoutesModule,
  ClientRoutesModule,
  ClientsService,
  OrderRoutesModule,
  OrdersModule,
  OrdersService,
  WebhookModule,
  WebhookRoutesModule,
} from '../../src/index.js';
import { loadConfig } from '../../src/server/settings/settings.js';
import { usherModuleFor } from '../../src/usher.module.js';
import { exchange, firstAnswer } from '../auth/tokens/support.js';
import { type Backend, createBackend } from '../support/backend.js';
import { eventually } from '../support/eventually.js';
import { answer, TestReceiver } from '../support/receiver.js';
import { basic, COMPLETION, NEW_ORDER, ONE_ATTEMPT, SHORT_TIMES } from '../support/usher.js';

type Json = Record<string, unknown>;

describe.each([
  ['Express', () => new ExpressAdapter()],
  ['Fastify', () => new FastifyAdapter()],
])('in a host application on %s, a client', (_, adapter) => {
  let backend: Backend;
  let receiver: TestReceiver;
  let host: INestApplication;
  let url: string;
  let id: string;
  let secret: string;
  let bearer: string;
  let failed: string;

  beforeAll(async () => {
    [backend, receiver] = [await createBackend(), await TestReceiver.start()];
    const settings = { ...SHORT_TIMES, ...backend.settings, ...ONE_ATTEMPT };
    @Module({
      imports: [
        usherModuleFor(loadConfig({ ...settings, LOG_LEVEL: 'silent' })),
        AuthModule,
        ClientRoutesModule,
        OrdersModule,
        OrderRoutesModule,
        WebhookModule,
        WebhookRoutesModule,
        CertificationRoutesModule,
      ],
    })
    class HostModule {}
    host = await NestFactory.create(HostModule, adapter() as never, { logger: false, abortOnError: false });
    await host.listen(0, '127.0.0.1');
    url = await host.getUrl();
    const created = await host.get(ClientsService, { strict: false }).create('Partner', receiver.url);
    [id, secret] = [created.client.id, created.secret];
    const token = await call('POST', '/auth/token', basic(id, secret), { grant_type: 'client_credentials' });
    bearer = `Bearer ${String(token.body.access_token)}`;
    failed = await failedOrder(created.client);
  });
  afterAll(async () => {
    await host.close();
    receiver.close();
    await backend.drop();
  });

  async function call(method: string, path: string, authorization: string, body?: object, headers = {}) {
    const response = await fetch(url + path, {
      method,
      headers: { authorization, ...(body && { 'content-type': 'application/json' }), ...headers },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    const isJson = /[/+]json/.test(response.headers.get('content-type') ?? '');
    return { status: response.status, headers: response.headers, text, body: (isJson ? JSON.parse(text) : {}) as Json };
  }

  async function failedOrder(client: Parameters<OrdersService['create']>[0]): Promise<string> {
    receiver.behaviour = answer(401);
    const orders = host.get(OrdersService, { strict: false });
    const { key } = await orders.create(client, NEW_ORDER);
    await orders.complete(key, COMPLETION);
    await eventually('the notification is FAILED', async () =>
      (await call('GET', '/webhooks?status=FAILED', bearer)).text.includes(key),
    );
    receiver.behaviour = answer(200);
    return key;
  }

  test('lists its orders and their totals', async () => {
    const { body } = await call('GET', '/movie-orders?status=COMPLETED', bearer);
    expect(body.data).toMatchObject([{ key: failed, delivery: { status: 'FAILED' } }]);
    const [{ lastUpdatedAt } = { lastUpdatedAt: '' }] = body.data as { lastUpdatedAt: string }[];
    const totals = await call('GET', `/movie-orders/totals?day=${lastUpdatedAt.slice(0, 10)}`, bearer);
    expect(totals.body.currencies).toMatchObject([{ currencyCode: 'MYR', count: 1, payableAmount: 4300 }]);
  });

  test('learns why a notification failed, and reads it on a page and as NDJSON', async () => {
    expect((await call('GET', '/webhooks/health', bearer)).text).toContain('signature-refused');
    const { body } = await call('GET', '/webhooks/undelivered', bearer);
    expect(body).toMatchObject({ data: [{ body: expect.stringContaining(failed) }], nextCursor: null, hasMore: false });
    const accept = { accept: 'application/x-ndjson' };
    const { headers, text } = await call('GET', '/webhooks/undelivered', bearer, undefined, accept);
    expect([headers.get('content-type'), headers.get('cache-control')]).toEqual(['application/x-ndjson', 'no-store']);
    expect(text.trim().split('\n')).toHaveLength(1);
    expect(text).toContain(failed);
  });

  test.each([
    ['POST /auth/token', () => basic(id, secret)],
    ['GET /client', () => basic(id, secret)],
    ['GET /movie-orders', () => bearer],
    ['POST /internal/movie-orders/x/complete', () => basic('internal', 'internal')],
  ])('is refused with two Authorization headers: %s', async (line, authorization) => {
    const header = `Authorization: ${authorization()}`;
    const lines = [`${line} HTTP/1.1`, 'Host: localhost', 'Connection: close', header, header, '', ''];
    const text = await exchange(url, lines.join('\r\n'));
    expect([firstAnswer(text).status, text]).toEqual([
      400,
      expect.stringContaining('send only one Authorization header'),
    ]);
  });

  test('repairs its Notify URL, rotates its secret and ends the old one', async () => {
    const changed = await call('PUT', '/client/notify-url', basic(id, secret), { notifyUrl: receiver.url });
    expect(changed).toMatchObject({ status: 200, body: { notifyUrl: receiver.url } });
    const key = { 'idempotency-key': 'hard-to-guess-7f3a9c' };
    const rotated = await call('POST', '/client/secret/rotate', basic(id, secret), undefined, key);
    expect(rotated).toMatchObject({ status: 200, body: { id } });
    const { secret: next } = rotated.body as { secret: string };
    expect((await call('POST', '/client/secret/finish', basic(id, next))).status).toBe(200);
    const refused = await call('GET', '/client', basic(id, secret));
    expect([refused.status, refused.headers.get('www-authenticate')]).toEqual([401, expect.stringContaining('Basic')]);
    secret = next;
    expect((await call('GET', '/client', basic(id, secret))).body).toMatchObject({ id, notifyUrl: receiver.url });
  });

  test('has everything sent again, and sees the progress', async () => {
    const { status, headers, body } = await call('POST', '/webhooks/resend', bearer, { status: 'FAILED' });
    expect(status).toBe(202);
    expect(headers.get('location')).toContain(`/webhook-resends/${String(body.id)}`);
    await eventually('the resend is finished', async () => {
      const { body: progress } = await call('GET', `/webhook-resends/${String(body.id)}`, bearer);
      return progress.state === 'FINISHED';
    });
    expect(await receiver.waitFor(failed, 2)).toHaveLength(2);
  });

  test('has its receiver certified', async () => {
    const { status, body } = await call('POST', '/sandbox/certifications', bearer, {});
    expect(status).toBe(200);
    expect(body.checks).toEqual(expect.arrayContaining([expect.objectContaining({ passed: expect.any(Boolean) })]));
  });
});
