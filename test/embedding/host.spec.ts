import { DataInterceptor, EveryFilter, post, StaffGuard } from './host-parts.js';
import 'reflect-metadata';
import { createHmac } from 'node:crypto';
import { type INestApplication, Module } from '@nestjs/common';
import { APP_FILTER, APP_GUARD, APP_INTERCEPTOR, NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { getDataSourceToken, TypeOrmModule } from '@nestjs/typeorm';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { DataSource, type DataSourceOptions } from 'typeorm';
import { dataSourceOptions } from '../../src/database/data-source-options.js';
import { type EmbeddedPostgres, openEmbeddedPostgres } from '../../src/database/embedded/index.js';
import {
  AuditLog,
  AuthMetadataModule,
  AuthModule,
  ClientsService,
  migrateUsherQueue,
  OrderRoutesModule,
  OrdersModule,
  OrdersService,
  usherEntities,
  UsherModule,
  type UsherOptions,
  usherMigrations,
  WebhookModule,
  WebhookService,
} from '../../src/index.js';
import { Workers } from '../../src/queue/workers.js';
import { loadConfig } from '../../src/server/settings/settings.js';
import { type Backend, createBackend } from '../support/backend.js';
import { TestReceiver } from '../support/receiver.js';
import { basic, COMPLETION, NEW_ORDER } from '../support/usher.js';

const MASTER_KEYS = `test:${Buffer.alloc(32, 7).toString('base64')}`;

let backend: Backend;
let receiver: TestReceiver;
let embedded: EmbeddedPostgres | null;
let hostOptions: DataSourceOptions;
let queue: NonNullable<UsherOptions['queue']>;
const open: INestApplication[] = [];

beforeAll(async () => {
  [backend, receiver] = [await createBackend(), await TestReceiver.start()];
  const config = loadConfig(backend.settings);
  embedded = config.database.kind === 'embedded' ? await openEmbeddedPostgres(config.database.folder, 'own') : null;
  const base = await dataSourceOptions(config, embedded, 'migration');
  const own = await new DataSource({ ...base, entities: usherEntities } as DataSourceOptions).initialize();
  for (const _ of usherMigrations) await own.undoLastMigration();
  await own.destroy();
  hostOptions = {
    ...base,
    entities: usherEntities,
    migrations: usherMigrations,
    migrationsTableName: 'migrations',
    entityPrefix: 'shop_',
  } as DataSourceOptions;
  queue = { prefix: `${config.queuePrefix}-host`, ...('url' in config.queue && { url: config.queue.url.href }) };
  const dataSource = await new DataSource(hostOptions).initialize();
  await migrateUsherQueue(usherOptions(dataSource));
  await dataSource.destroy();
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((application) => application.close()));
});
afterAll(async () => {
  receiver.close();
  await embedded?.close();
  await backend.drop();
});

const usherOptions = (dataSource: DataSource, more: Partial<UsherOptions> = {}): UsherOptions => ({
  environment: 'sandbox',
  masterKeys: MASTER_KEYS,
  database: { dataSource },
  queue,
  publicUrl: 'https://cinema.example/api',
  retry: { timeoutMs: 1_000, retryEveryMs: 1_000, minIntervalMs: 500 },
  notifyUrls: { allowPrivate: true },
  ...more,
});

async function migrated(): Promise<void> {
  const dataSource = await new DataSource(hostOptions).initialize();
  await dataSource.runMigrations();
  await dataSource.destroy();
}

function hostModule(more: Partial<UsherOptions> = {}): new () => object {
  @Module({
    imports: [
      TypeOrmModule.forRoot(hostOptions),
      UsherModule.forRootAsync({
        inject: [getDataSourceToken()],
        useFactory: (dataSource: DataSource) => usherOptions(dataSource, more),
      }),
      AuthModule,
      AuthMetadataModule,
      OrdersModule,
      OrderRoutesModule,
      WebhookModule,
    ],
    providers: [
      { provide: APP_GUARD, useClass: StaffGuard },
      { provide: APP_INTERCEPTOR, useClass: DataInterceptor },
      { provide: APP_FILTER, useClass: EveryFilter },
    ],
  })
  class HostModule {}
  return HostModule;
}

async function start(adapter: ExpressAdapter | FastifyAdapter, more: Partial<UsherOptions> = {}): Promise<string> {
  const application = await NestFactory.create(hostModule(more), adapter as never, {
    logger: false,
    abortOnError: false,
  });
  open.push(application);
  application.setGlobalPrefix('api');
  await application.listen(0, '127.0.0.1');
  return application.getUrl();
}

test('a host whose data source lacks the migrations does not start and says what to do', async () => {
  const dataSource = await new DataSource(hostOptions).initialize();
  @Module({ imports: [UsherModule.forRoot(usherOptions(dataSource))] })
  class UnmigratedModule {}
  const starting = NestFactory.createApplicationContext(UnmigratedModule, { logger: false, abortOnError: false });
  await expect(starting).rejects.toThrow('add usherMigrations to the migrations of your DataSource');
  await dataSource.destroy();
});

describe.each([
  ['Express', () => new ExpressAdapter()],
  ['Fastify', () => new FastifyAdapter()],
])('a host application on %s, with its own default data source', (_, adapter) => {
  beforeAll(migrated);

  test('serves tokens below its prefix, in the specified form, whatever its guards, filters and interceptors do', async () => {
    const url = await start(adapter());
    const clients = open[0]!.get(ClientsService, { strict: false });
    const { client, secret } = await clients.create('Partner', null);
    const authorization = basic(client.id, secret);

    const issued = await post(`${url}/api/auth/token`, authorization, { grant_type: 'client_credentials' });
    expect([issued.status, Object.keys(issued.body)]).toEqual([
      200,
      ['access_token', 'expires_in', 'refresh_token', 'refresh_token_expires_in', 'token_type'],
    ]);
    expect(issued.headers.get('cache-control')).toBe('no-store');
    const { refresh_token } = issued.body as { refresh_token: string };
    const form = new URLSearchParams({ grant_type: 'refresh_token', refresh_token }).toString();
    const refreshed = await post(`${url}/api/auth/refresh`, authorization, form, 'application/x-www-form-urlencoded');
    expect([refreshed.status, refreshed.body]).toEqual([200, expect.objectContaining({ refresh_token })]);

    const wrong = await post(`${url}/api/auth/token`, basic(client.id, 'wrong'), { grant_type: 'client_credentials' });
    expect([wrong.status, wrong.body, wrong.headers.get('www-authenticate')]).toEqual([
      401,
      expect.objectContaining({ error: 'invalid_client' }),
      'Basic realm="usher", charset="UTF-8"',
    ]);
    for (const [body, error] of [
      [{}, 'invalid_request'],
      [[], 'invalid_request'],
      [{ grant_type: 'password' }, 'unsupported_grant_type'],
      [{ grant_type: 'client_credentials', scope: 'all' }, 'invalid_scope'],
    ] as const)
      expect(await post(`${url}/api/auth/token`, authorization, body)).toMatchObject({ status: 400, body: { error } });
    const twice = 'grant_type=client_credentials&grant_type=client_credentials';
    expect(
      await post(`${url}/api/auth/token`, authorization, twice, 'application/x-www-form-urlencoded'),
    ).toMatchObject({ status: 400, body: { error: 'invalid_request' } });
  });

  test('publishes the metadata at its root, with the addresses of its public URL', async () => {
    const url = await start(adapter());
    const response = await fetch(`${url}/.well-known/oauth-authorization-server/api`);
    expect(await response.json()).toMatchObject({
      issuer: 'https://cinema.example/api',
      token_endpoint: 'https://cinema.example/api/auth/token',
    });
  });

  test('has its orders notified with a valid signature, and its own transactions decide', async () => {
    await start(adapter());
    const [clients, orders, webhooks] = [ClientsService, OrdersService, WebhookService].map((service) =>
      open[0]!.get(service as never, { strict: false }),
    ) as [ClientsService, OrdersService, WebhookService];
    const dataSource = open[0]!.get<DataSource>(getDataSourceToken());
    const { client, secret } = await clients.create('Partner', receiver.url);

    const key = await dataSource.transaction(async (manager) => {
      const order = await orders.create(client, NEW_ORDER, { manager });
      await orders.complete(order.key, COMPLETION, { manager });
      return order.key;
    });
    const [received] = await receiver.waitFor(key);
    const { 'x-timestamp': timestamp, 'x-nonce-str': nonce, 'x-signature': signature } = received!.headers;
    const signed = `${timestamp}${nonce}${Buffer.from(received!.rawBody).toString('base64')}`;
    expect(createHmac('sha256', secret).update(signed).digest('hex')).toBe(signature);

    const request = { referenceId: `Rolled-back-${key}`, clientId: client.id, data: {} };
    const rolledBack = dataSource.transaction(async (manager) => {
      expect((await webhooks.notify(request, { manager })).isNew).toBe(true);
      throw new Error('no seats');
    });
    await expect(rolledBack).rejects.toThrow('no seats');
    expect(await webhooks.find(request.referenceId)).toEqual([]);
  });
});

test('a host that only records starts no worker', async () => {
  await start(new FastifyAdapter(), { deliver: false });
  const [clients, webhooks] = [
    open[0]!.get(ClientsService, { strict: false }),
    open[0]!.get(WebhookService, { strict: false }),
  ];
  const { client } = await clients.create('Partner', receiver.url);
  const { webhook } = await webhooks.notify({ referenceId: 'Recorded-1', clientId: client.id, data: {} });
  expect(webhook).toMatchObject({ status: 'PENDING', attemptCount: 0 });
  expect(open[0]!.get(Workers, { strict: false }).all).toEqual([]);
});

test('changes by a host are in the audit, with the actor that it names, else as "host"', async () => {
  await start(new FastifyAdapter(), { deliver: false });
  const clients = open[0]!.get(ClientsService, { strict: false });
  const { client } = await clients.create('Partner', receiver.url);
  await clients.setDisabled(client.id, true, { name: 'staff:alice', address: '192.0.2.7' });
  const events = await open[0]!.get(AuditLog, { strict: false }).list({ subject: `client:${client.id}` });
  expect(events.map(({ action, actor, address }) => [action, actor, address])).toEqual([
    ['client.disabled', 'staff:alice', '192.0.2.7'],
    ['client.created', 'host', null],
  ]);
});

test('a misspelt field is refused by name', async () => {
  await start(new FastifyAdapter(), { deliver: false });
  const webhooks = open[0]!.get(WebhookService, { strict: false });
  const request = { referenceId: 'R', clientId: 'c', data: {}, notifyURL: receiver.url };
  await expect(webhooks.notify(request)).rejects.toMatchObject({
    status: 400,
    errors: [{ pointer: '#/notifyURL', message: 'is not a known field; did you mean notifyUrl?' }],
  });
});
