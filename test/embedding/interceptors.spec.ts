import 'reflect-metadata';
import { type INestApplication, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import {
  ClientsService,
  OrderRoutesModule,
  OrdersModule,
  OrdersService,
  UsherModule,
  WebhookModule,
} from '../../src/index.js';
import { issueAccessToken } from '../../src/testing/index.js';
import { type Backend, createBackend } from '../support/backend.js';
import { COMPLETION, NEW_ORDER } from '../support/usher.js';
import { DataInterceptor, optionsOn } from './host-parts.js';

describe.each([
  ['Express', () => new ExpressAdapter()],
  ['Fastify', () => new FastifyAdapter()],
])('a host application on %s whose interceptor puts every answer into `data`', (_, adapter) => {
  let backend: Backend;
  let host: INestApplication;
  beforeAll(async () => {
    backend = await createBackend();
    @Module({
      imports: [
        UsherModule.forRoot({ ...optionsOn(backend), deliver: false }),
        OrdersModule,
        OrderRoutesModule,
        WebhookModule,
      ],
    })
    class HostModule {}
    host = await NestFactory.create(HostModule, adapter() as never, { logger: false, abortOnError: false });
    host.useGlobalInterceptors(new DataInterceptor());
    await host.listen(0, '127.0.0.1');
  });
  afterAll(async () => {
    await host.close();
    await backend.drop();
  });

  test('answers the totals of a day as an object in it', async () => {
    const [clients, orders] = [host.get(ClientsService, { strict: false }), host.get(OrdersService, { strict: false })];
    const { client } = await clients.create('Partner', 'http://127.0.0.1:4000/notify');
    const { key } = await orders.create(client, NEW_ORDER);
    const { lastUpdatedAt } = await orders.complete(key, COMPLETION);
    const day = lastUpdatedAt.slice(0, 10);
    const authorization = `Bearer ${await issueAccessToken(host, client.id)}`;
    const response = await fetch(`${await host.getUrl()}/movie-orders/totals?day=${day}`, {
      headers: { authorization },
    });
    const { payableAmount } = NEW_ORDER;
    expect(await response.json()).toEqual({
      data: { day, currencies: [{ currencyCode: 'MYR', count: 1, payableAmount, keysDigest: expect.anything() }] },
    });
  });
});
