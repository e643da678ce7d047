import 'reflect-metadata';
import {
  HttpException,
  type INestApplicationContext,
  Injectable,
  Module,
  type ModuleMetadata,
  Scope,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { getDataSourceToken } from '@nestjs/typeorm';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { DataSource, type DataSourceOptions, DefaultNamingStrategy } from 'typeorm';
import { dataSourceOptions } from '../../src/database/data-source-options.js';
import { AfterCommit } from '../../src/database/sql.js';
import { type EmbeddedPostgres, openEmbeddedPostgres } from '../../src/database/embedded/index.js';
import {
  AuthModule,
  ClientsModule,
  ClientsService,
  migrateUsherQueue,
  OnOrderCompleted,
  type OrderCompleted,
  OrdersModule,
  OrdersService,
  usherEntities,
  UsherModule,
  type UsherOptions,
  WebhookModule,
  WebhookService,
} from '../../src/index.js';
import { loadConfig } from '../../src/server/settings/settings.js';
import { type Backend, createBackend } from '../support/backend.js';
import { COMPLETION, NEW_ORDER } from '../support/usher.js';

let backend: Backend;
let embedded: EmbeddedPostgres | null;
let dataSource: DataSource;
let options: UsherOptions;
const open: INestApplicationContext[] = [];

beforeAll(async () => {
  backend = await createBackend();
  const config = loadConfig(backend.settings);
  embedded = config.database.kind === 'embedded' ? await openEmbeddedPostgres(config.database.folder, 'own') : null;
  const base = await dataSourceOptions(config, embedded, 'service');
  dataSource = await new DataSource({ ...base, entities: usherEntities } as DataSourceOptions).initialize();
  options = {
    environment: 'sandbox',
    masterKeys: `k1:${Buffer.alloc(32, 1).toString('base64')}`,
    database: { dataSource },
    queue: { prefix: config.queuePrefix, ...('url' in config.queue && { url: config.queue.url.href }) },
    deliver: false,
  };
  await migrateUsherQueue(options);
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((application) => application.close()));
});
afterAll(async () => {
  await dataSource.destroy();
  await embedded?.close();
  await backend.drop();
});

/** As many applications have one: a prefix before every name of a kind. */
class Prefixing extends DefaultNamingStrategy {
  constructor(private readonly kind: 'table' | 'column' | 'index') {
    super();
  }

  override tableName(target: string, given: string | undefined): string {
    const name = super.tableName(target, given);
    return this.kind === 'table' ? `app_${name}` : name;
  }

  override columnName(property: string, given: string, prefixes: string[]): string {
    const name = super.columnName(property, given, prefixes);
    return this.kind === 'column' ? `app_${name}` : name;
  }

  override indexName(...of: Parameters<DefaultNamingStrategy['indexName']>): string {
    const name = super.indexName(...of);
    return this.kind === 'index' ? `app_${name}` : name;
  }
}

async function start({ imports = [], providers = [] }: ModuleMetadata): Promise<INestApplicationContext> {
  @Module({ imports, providers })
  class HostModule {}
  const application = await NestFactory.createApplicationContext(HostModule, { logger: false, abortOnError: false });
  open.push(application);
  return application;
}

/** Starts Usher on another data source of the same database. */
async function startOn(different: object): Promise<void> {
  const own = await new DataSource({ ...dataSource.options, ...different } as DataSourceOptions).initialize();
  try {
    await start({ imports: [UsherModule.forRoot({ ...options, database: { dataSource: own } })] });
  } finally {
    await own.destroy();
  }
}

describe('a host does not start, and reads what to do', () => {
  test('if UsherModule is imported twice', async () => {
    const twice = [UsherModule.forRoot(options), UsherModule.forRoot(options)];
    await expect(start({ imports: twice })).rejects.toThrow('UsherModule is imported twice; call forRoot()');
  });

  test('if options are invalid, all of them', () => {
    const options = { environment: 'staging', database: { url: 'oracle://h' } } as unknown as UsherOptions;
    expect(() => UsherModule.forRoot(options)).toThrow(
      /environment="staging" is invalid; use one of sandbox, production\n[^]*database\.url is invalid[^]*masterKeys/,
    );
  });

  test('if UsherModule is not imported', async () => {
    await expect(start({ imports: [AuthModule] })).rejects.toThrow('import UsherModule.forRoot() or forRootAsync()');
  });

  test.each(['never', 'once'])('if its data source is not open, and was %s', async (opened) => {
    const closed = new DataSource(dataSource.options);
    if (opened === 'once') await closed.initialize().then(() => closed.destroy());
    const usher = UsherModule.forRoot({ ...options, database: { dataSource: closed } });
    await expect(start({ imports: [usher] })).rejects.toThrow('the DataSource is not initialized, or was destroyed');
  });

  test.each<[string, object, string]>([
    ['caches all queries', { cache: { alwaysEnabled: true } }, 'set cache.alwaysEnabled to false'],
    ['has a charset without some characters', { charset: 'latin1' }, 'use "utf8mb4"'],
    ['renames tables', { namingStrategy: new Prefixing('table') }, 'changes names in the table usher_client'],
    ['renames columns', { namingStrategy: new Prefixing('column') }, 'changes names in the table usher_client'],
  ])('if its data source %s', async (_what, wrong, message) => {
    await expect(startOn(wrong)).rejects.toThrow(message);
  });

  test('if its own data source has the name of Usher’s', () => {
    const useFactory = (injected: DataSource): UsherOptions => ({ ...options, database: { dataSource: injected } });
    expect(() => UsherModule.forRootAsync({ inject: [getDataSourceToken('usher')], useFactory })).toThrow(
      'give the injected one another name',
    );
  });

  test.each<[string, Scope]>([
    ['is request-scoped', Scope.REQUEST],
    ['needs a request-scoped one', Scope.DEFAULT],
  ])('if a provider that its options inject %s', async (_what, scope) => {
    @Injectable({ scope: Scope.REQUEST })
    class Tenant {}
    const provider = { provide: 'SIGN_IN', scope, inject: [Tenant], useFactory: () => ({}) };
    @Module({ providers: [Tenant, provider], exports: ['SIGN_IN'] })
    class TenantModule {}
    const usher = UsherModule.forRootAsync({ imports: [TenantModule], inject: ['SIGN_IN'], useFactory: () => options });
    await expect(start({ imports: [usher, OrdersModule, WebhookModule] })).rejects.toThrow(
      'need a request-scoped provider',
    );
  });

  test.each([
    ['database.url', { database: { url: 'mysql://127.0.0.1:1/cinema' }, queue: { url: 'redis://127.0.0.1:1' } }],
    ['queue.url', { queue: { url: 'redis://127.0.0.1:1' } }],
  ])('if a server does not answer: the message names the option %s', async (option, wrong) => {
    const usher = UsherModule.forRoot({ ...options, ...wrong, deliver: true });
    await expect(start({ imports: [usher, WebhookModule] })).rejects.toThrow(
      `connection refused; start it or correct ${option}`,
    );
  });
});

test('a host starts whose naming strategy changes other names', () =>
  startOn({ namingStrategy: new Prefixing('index') }));

test('applications that use a data source one after the other leave one subscriber there, which serves them all', async () => {
  const outcomes: string[] = [];
  for (const name of ['first', 'second', 'reopened']) {
    const application = await start({ imports: [UsherModule.forRoot(options)] });
    // A data source that is opened again has new subscribers.
    if (name === 'reopened') await dataSource.destroy().then(() => dataSource.initialize());
    const afterCommit = application.get(AfterCommit, { strict: false });
    await dataSource.transaction(async (manager) => afterCommit.do(manager, () => outcomes.push(name)));
    await application.close();
  }
  expect(outcomes).toEqual(['first', 'second', 'reopened']);
  expect(dataSource.subscribers).toHaveLength(1);
});

describe('a caller of the services gets an HttpException that says what is wrong', () => {
  let application: INestApplicationContext;

  beforeEach(async () => {
    application = await start({ imports: [UsherModule.forRoot(options), ClientsModule, OrdersModule, WebhookModule] });
  });

  test.each<[string, number, (clients: ClientsService) => Promise<unknown>]>([
    ['an unknown client', 404, (clients) => clients.get('nobody')],
    ['an invalid name', 422, (clients) => clients.create('', null)],
    ['an invalid Notify URL', 400, (clients) => clients.create('Partner', 'ftp://partner.example')],
    ['imported credentials that are invalid', 422, (clients) => clients.import('P', null, { id: '', secret: 'x' })],
    [
      'an id that exists',
      409,
      async (clients) => {
        const { client } = await clients.create('Partner', null);
        return clients.import('Other', null, { id: client.id, secret: 'another secret of a client' });
      },
    ],
  ])('%s: %d', async (_, status, call) => {
    const error: unknown = await call(application.get(ClientsService, { strict: false })).catch(
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(HttpException);
    expect((error as HttpException).getStatus()).toBe(status);
  });

  test('a notification for an unknown client: 404', async () => {
    const webhooks = application.get(WebhookService, { strict: false });
    await expect(webhooks.notify({ referenceId: 'R-1', clientId: 'nobody', data: {} })).rejects.toMatchObject({
      status: 404,
    });
  });
});

test('a listener of a completed order may be request-scoped: each order has its own instance', async () => {
  const seen: [Listener, string][] = [];
  @Injectable({ scope: Scope.REQUEST })
  class Listener {
    @OnOrderCompleted()
    note({ order }: OrderCompleted): void {
      seen.push([this, order.key]);
    }
  }
  const application = await start({
    imports: [UsherModule.forRoot(options), ClientsModule, OrdersModule, WebhookModule],
    providers: [Listener],
  });
  const orders = application.get(OrdersService, { strict: false });
  const { client } = await application
    .get(ClientsService, { strict: false })
    .create('Partner', 'https://partner.example/notify');
  const keys: string[] = [];
  for (let made = 0; made < 2; made += 1) {
    const { key } = await orders.create(client, NEW_ORDER);
    await orders.complete(key, COMPLETION);
    keys.push(key);
  }
  expect(seen.map(([, key]) => key)).toEqual(keys);
  expect(new Set(seen.map(([listener]) => listener)).size).toBe(2);
});
