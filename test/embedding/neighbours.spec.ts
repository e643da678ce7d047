import 'reflect-metadata';
import { BullModule } from '@nestjs/bullmq';
import {
  type ArgumentsHost,
  Catch,
  Controller,
  type DynamicModule,
  type ExceptionFilter,
  Get,
  Global,
  HttpException,
  type INestApplicationContext,
  Injectable,
  type LoggerService,
  Module,
  UseGuards,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { EventEmitter2, EventEmitterModule, OnEvent } from '@nestjs/event-emitter';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { getDataSourceToken, TypeOrmModule } from '@nestjs/typeorm';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { FastifyReply } from 'fastify';
import { Registry } from 'prom-client';
import { DataSource } from 'typeorm';
import {
  AuthModule,
  BearerGuard,
  ClientsModule,
  ClientsService,
  WebhookModule,
  WebhookService,
} from '../../src/index.js';
import { type Config, loadConfig } from '../../src/server/settings/settings.js';
import { usherModuleFor } from '../../src/usher.module.js';
import { QUEUE_CONNECTIONS, type QueueConnections } from '../../src/queue/queue-connections.js';
import { Workers } from '../../src/queue/workers.js';
import { WEBHOOK_QUEUE } from '../../src/webhooks/queue/delivery.queue.js';
import { type Backend, createBackend } from '../support/backend.js';
import { TestReceiver } from '../support/receiver.js';
import { SHORT_TIMES } from '../support/usher.js';

let receiver: TestReceiver;
const open: INestApplicationContext[] = [];
const backends: Backend[] = [];

beforeAll(async () => {
  receiver = await TestReceiver.start();
});
afterEach(async () => {
  for (const application of open.splice(0)) await application.close();
  for (const backend of backends.splice(0)) await backend.drop();
});
afterAll(() => receiver.close());

/** Never connected. The test only checks where it is injected. */
const shop = new DataSource({ type: 'postgres' });

const dataSourceNamed = (name?: string): DynamicModule =>
  TypeOrmModule.forRootAsync({
    ...(name !== undefined && { name }),
    useFactory: () => ({ type: 'postgres', manualInitialization: true }),
    dataSourceFactory: () => Promise.resolve(shop),
  });

async function settings(more: Record<string, string> = {}): Promise<Config> {
  const backend = await createBackend();
  backends.push(backend);
  return loadConfig({ ...SHORT_TIMES, ...backend.settings, ...more });
}

/** Starts an application with Usher and further modules. */
async function start(config: Config, ...imports: (DynamicModule | (new () => object))[]) {
  @Module({ imports: [usherModuleFor(config), ClientsModule, WebhookModule, ...imports] })
  class CinemaModule {}
  const application = await NestFactory.createApplicationContext(CinemaModule, { logger: false, abortOnError: false });
  open.push(application);
  return application;
}

const queueNamed = (name: string): DynamicModule =>
  BullModule.registerQueueAsync({
    name,
    inject: [QUEUE_CONNECTIONS],
    useFactory: ({ worker }: QueueConnections) => ({ connection: worker, prefix: 'cinema' }),
  });

@Controller('seats')
@UseGuards(BearerGuard)
class SeatsController {
  @Get()
  seats(): string[] {
    return [];
  }
}

/** The catch-all filter from Nest's documentation. */
@Catch()
class EveryFilter implements ExceptionFilter {
  catch(error: unknown, host: ArgumentsHost): void {
    const status = error instanceof HttpException ? error.getStatus() : 500;
    host.switchToHttp().getResponse<FastifyReply>().status(status).send({ from: 'the filter' });
  }
}

async function seats(logger: LoggerService): Promise<NestFastifyApplication> {
  const imports = [usherModuleFor(await settings({ USHER_ROLE: 'api' })), AuthModule];
  @Module({ imports, controllers: [SeatsController] })
  class SeatsModule {}
  const options = { logger, abortOnError: false };
  const application = await NestFactory.create<NestFastifyApplication>(SeatsModule, new FastifyAdapter(), options);
  open.push(application);
  return application;
}

const workerOf = (application: INestApplicationContext) =>
  application.get(Workers, { strict: false }).all.find(({ worker }) => worker.name === WEBHOOK_QUEUE)?.worker;

describe('an application', () => {
  test('gets a refusal as an exception of Nest, which its filters handle and which is not logged as an error', async () => {
    const faults: unknown[] = [];
    const quiet = (): void => undefined;
    const application = await seats({ log: quiet, warn: quiet, error: (...args: unknown[]) => faults.push(args) });
    await application.init();
    const { statusCode, body } = await application.inject('/seats');
    expect(statusCode).toBe(401);
    expect(JSON.parse(body)).toMatchObject({ statusCode: 401, error: 'Unauthorized' });
    expect(faults).toEqual([]);
  });

  test('with a catch-all filter answers a refusal with its status', async () => {
    const application = await seats({ log: () => undefined, warn: () => undefined, error: () => undefined });
    application.useGlobalFilters(new EveryFilter());
    await application.init();
    const { statusCode, headers, body } = await application.inject('/seats');
    expect([statusCode, JSON.parse(body)]).toEqual([401, { from: 'the filter' }]);
    expect(headers['www-authenticate']).toBe('Bearer realm="usher"');
  });

  test('can have queues with the same names as Usher’s, and Usher uses its own', async () => {
    const names = ['webhook', 'usher-webhook', 'usher-retry-run', 'usher-purge', 'usher-sandbox-operator'];
    const application = await start(await settings(), ...names.map(queueNamed));
    const { client } = await application.get(ClientsService, { strict: false }).create('Aggregator', receiver.url);
    const webhooks = application.get(WebhookService, { strict: false });
    await webhooks.notify({ referenceId: 'Neighbour-1', clientId: client.id, data: { key: 'Neighbour-1' } });
    await receiver.waitFor('Neighbour-1');
  });

  test('can register its workers manually, and Usher’s workers run from the start', async () => {
    const manual = BullModule.forRoot({ connection: {}, extraOptions: { manualRegistration: true } });
    const application = await start(await settings(), manual);
    expect(workerOf(application)?.isRunning()).toBe(true);
  });

  test('can have its own named data source', async () => {
    const application = await start(await settings({ USHER_ROLE: 'api' }), dataSourceNamed('shop'));
    expect(application.get(getDataSourceToken('shop'))).toBe(shop);
    expect(await application.get(ClientsService, { strict: false }).list()).toEqual([]);
  });

  test.each(['before', 'after'])('can have a default data source, imported %s Usher', async (order) => {
    const usher = usherModuleFor(await settings({ USHER_ROLE: 'api' }));
    const imports = order === 'before' ? [dataSourceNamed(), usher] : [usher, dataSourceNamed()];
    @Module({ imports })
    class ShopModule {}
    const application = await NestFactory.createApplicationContext(ShopModule, { logger: false, abortOnError: false });
    open.push(application);
    expect(application.get(DataSource)).toBe(shop);
    expect(await application.get(ClientsService, { strict: false }).list()).toEqual([]);
  });

  test('gets its own event emitter with its own options', async () => {
    @Injectable()
    class Foyer {
      readonly heard: string[] = [];

      constructor(readonly emitter: EventEmitter2) {}

      @OnEvent('doors.*')
      note(what: string): void {
        this.heard.push(what);
      }
    }
    @Module({ providers: [Foyer] })
    class FoyerModule {}
    const config = await settings({ USHER_ROLE: 'api' });
    const application = await start(config, EventEmitterModule.forRoot({ wildcard: true }), FoyerModule);
    const foyer = application.get(Foyer, { strict: false });
    await foyer.emitter.emitAsync('doors.opened', 'opened');
    expect(application.get(EventEmitter2)).toBe(foyer.emitter);
    expect(foyer.heard).toEqual(['opened']);
  });

  test('gets its own metrics registry', async () => {
    const registry = new Registry();
    @Global()
    @Module({ providers: [{ provide: Registry, useValue: registry }], exports: [Registry] })
    class OwnMetricsModule {}
    @Injectable()
    class Till {
      constructor(readonly registry: Registry) {}
    }
    @Module({ providers: [Till] })
    class TillModule {}
    const application = await start(await settings(), OwnMetricsModule, TillModule);
    expect(application.get(Till, { strict: false }).registry).toBe(registry);
    expect(registry.getMetricsAsArray()).toEqual([]);
  });
});

test('two Ushers in one process keep their own settings, even if both modules are made before either starts', async () => {
  const configs = await Promise.all(['11', '22'].map((most) => settings({ WEBHOOK_CONCURRENCY: most })));
  const modules = configs.map((config) => usherModuleFor(config));
  for (const usher of modules) {
    @Module({ imports: [usher, WebhookModule] })
    class CinemaModule {}
    open.push(await NestFactory.createApplicationContext(CinemaModule, { logger: false, abortOnError: false }));
  }
  const concurrencies = open.map((one) => workerOf(one)?.concurrency);
  expect(concurrencies).toEqual([11, 22]);
});
