import 'reflect-metadata';
import { Controller, Get, Injectable, Module, UseGuards } from '@nestjs/common';
import type { INestApplicationContext, Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import {
  BasicGuard,
  BearerGuard,
  type Client,
  ClientsModule,
  ClientsService,
  CurrentClient,
  OnOrderCompleted,
  type OrderCompleted,
  OrdersModule,
  OrdersService,
  WebhookModule,
  WebhookService,
} from '../../src/index.js';
import { type Config, loadConfig } from '../../src/server/settings/settings.js';
import { usherModuleFor } from '../../src/usher.module.js';
import { issueAccessToken } from '../../src/testing/index.js';
import { type Backend, createBackend } from '../support/backend.js';
import { TestReceiver } from '../support/receiver.js';
import { basic, COMPLETION, NEW_ORDER, SHORT_TIMES } from '../support/usher.js';

@Injectable()
class Cinema {
  constructor(
    readonly orders: OrdersService,
    readonly webhooks: WebhookService,
    readonly clients: ClientsService,
  ) {}
}

/** A listener with its own list, which throws while `isFull` is set, and for one order. */
@Injectable()
class Ledger {
  isFull = false;
  refused: string | undefined;
  readonly keys: string[] = [];

  @OnOrderCompleted()
  async note({ order, manager }: OrderCompleted): Promise<void> {
    await manager.query('SELECT 1');
    if (this.isFull) throw new Error('the ledger is full');
    if (order.key === this.refused) throw new Error('the ledger refuses this order');
    this.keys.push(order.key);
  }
}

@Controller('seats')
@UseGuards(BearerGuard)
class SeatsController {
  @Get()
  seats(@CurrentClient() client: Client): { of: string } {
    return { of: client.id };
  }
}

@Controller('account')
@UseGuards(BasicGuard)
class AccountController {
  @Get()
  account(@CurrentClient() client: Client): { of: string } {
    return { of: client.id };
  }
}

let backend: Backend;
let receiver: TestReceiver;
const open: INestApplicationContext[] = [];

beforeAll(async () => {
  receiver = await TestReceiver.start();
});
afterEach(async () => {
  for (const application of open.splice(0)) await application.close();
  await backend.drop();
});
afterAll(() => receiver.close());

async function settings(more: Record<string, string> = {}): Promise<Config> {
  backend = await createBackend();
  return loadConfig({ ...SHORT_TIMES, ...backend.settings, ...more });
}

async function start(module: Type): Promise<INestApplicationContext> {
  const application = await NestFactory.createApplicationContext(module, { logger: false, abortOnError: false });
  open.push(application);
  return application;
}

async function cinema(config: Config): Promise<INestApplicationContext> {
  @Module({
    imports: [usherModuleFor(config), ClientsModule, OrdersModule, WebhookModule],
    providers: [Cinema, Ledger],
  })
  class CinemaModule {}
  return start(CinemaModule);
}

describe('an application that embeds Usher', () => {
  test('can inject the services, and its notifications are delivered', async () => {
    const { orders, webhooks, clients } = (await cinema(await settings())).get(Cinema);
    const { client } = await clients.create('Aggregator', receiver.url);
    const { key } = await orders.create(client, NEW_ORDER);
    await orders.complete(key, COMPLETION);
    await webhooks.notify({ referenceId: 'Foreign-1', clientId: client.id, data: { key: 'Foreign-1' } });
    await Promise.all([receiver.waitFor(key), receiver.waitFor('Foreign-1')]);
  });

  test('has its listeners called in the transaction: one that throws rolls the completion back', async () => {
    const application = await cinema(await settings());
    const { orders, webhooks, clients } = application.get(Cinema);
    const ledger = application.get(Ledger);
    const { client } = await clients.create('Aggregator', receiver.url);
    const { key } = await orders.create(client, NEW_ORDER);

    ledger.isFull = true;
    await expect(orders.complete(key, COMPLETION)).rejects.toThrow('the ledger is full');
    expect((await orders.get(client, key)).status).toBe('PENDING');
    expect(await webhooks.find(key)).toEqual([]);

    ledger.isFull = false;
    await orders.complete(key, COMPLETION);
    await receiver.waitFor(key);
    expect(ledger.keys).toEqual([key]);
    expect(receiver.of(key)).toHaveLength(1);
  });

  test.each([
    ['beside the recorder', [WebhookModule]],
    ['without it', []],
  ])(
    'has a transaction for each completion: a listener that throws rolls back its own one alone, %s',
    async (_, more) => {
      @Module({
        imports: [usherModuleFor(await settings()), ClientsModule, OrdersModule, ...more],
        providers: [Ledger],
      })
      class LedgerModule {}
      const application = await start(LedgerModule);
      const orders = application.get(OrdersService, { strict: false });
      const clients = application.get(ClientsService, { strict: false });
      const ledger = application.get(Ledger);
      const { client } = await clients.create('Aggregator', receiver.url);
      const created = await Promise.all(Array.from({ length: 5 }, () => orders.create(client, NEW_ORDER)));
      const [refused, ...others] = created.map(({ key }) => key);
      ledger.refused = refused;
      const settled = await Promise.allSettled(created.map(({ key }) => orders.complete(key, COMPLETION)));
      expect(settled.map(({ status }) => status)).toEqual(['rejected', ...others.map(() => 'fulfilled')]);
      expect([...ledger.keys].sort()).toEqual([...others].sort());
      expect((await orders.get(client, refused ?? '')).status).toBe('PENDING');
    },
  );

  test('can protect its own routes with both guards and gets no routes of Usher', async () => {
    const config = await settings({ AUTH_FAILURE_LIMIT: '3/m' });
    @Module({
      imports: [usherModuleFor(config), OrdersModule, WebhookModule],
      controllers: [SeatsController, AccountController],
    })
    class SeatsModule {}
    const application = await NestFactory.create<NestFastifyApplication>(SeatsModule, new FastifyAdapter(), {
      logger: false,
      abortOnError: false,
    });
    open.push(application);
    await application.listen(0, '127.0.0.1');
    const url = await application.getUrl();
    const answer = async (method: string, path: string, headers = {}) => {
      const response = await fetch(url + path, { method, headers });
      return [response.status, response.headers.get('www-authenticate')];
    };
    const { client, secret } = await application.get(ClientsService, { strict: false }).create('Aggregator', null);
    const authorization = `Bearer ${await issueAccessToken(application, client.id)}`;
    expect(await answer('GET', '/seats')).toEqual([401, 'Bearer realm="usher"']);
    expect(await answer('GET', '/seats', { authorization: 'Bearer nonsense' })).toEqual([
      401,
      expect.stringMatching(/^Bearer realm="usher", error="invalid_token"/),
    ]);
    expect(await answer('GET', '/seats', { authorization })).toEqual([200, null]);
    const challenge = 'Basic realm="usher", charset="UTF-8"';
    expect(await answer('GET', '/account')).toEqual([401, challenge]);
    expect(await answer('GET', '/account', { authorization: basic(client.id, secret) })).toEqual([200, null]);
    for (const _ of [1, 2, 3])
      expect(await answer('GET', '/account', { authorization: basic(client.id, 'guess') })).toEqual([401, challenge]);
    expect(await answer('GET', '/account', { authorization: basic(client.id, secret) })).toEqual([429, null]);
    expect(await answer('POST', '/auth/token')).toEqual([404, null]);
    expect(await answer('POST', '/movie-orders')).toEqual([404, null]);
  });

  test('with OrdersModule but without WebhookModule does not start and says what is missing', async () => {
    const config = await settings({ USHER_ROLE: 'api' });
    @Module({ imports: [usherModuleFor(config), OrdersModule] })
    class SilentModule {}
    const application = await NestFactory.create<NestFastifyApplication>(SilentModule, new FastifyAdapter(), {
      logger: false,
      abortOnError: false,
    });
    open.push(application);
    await expect(application.init()).rejects.toThrow('import WebhookModule together with OrdersModule');
  });
});
