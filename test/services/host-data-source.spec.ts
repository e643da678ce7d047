import 'reflect-metadata';
import { randomBytes } from 'node:crypto';
import { Global, type INestApplication, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { EventEmitter2 } from '@nestjs/event-emitter';
import { getDataSourceToken, TypeOrmModule } from '@nestjs/typeorm';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { DataSource, type DataSourceOptions } from 'typeorm';
import {
  ClientsService,
  migrateUsherQueue,
  OrdersModule,
  usherEntities,
  usherMigrations,
  UsherModule,
  type UsherOptions,
  WebhookModule,
  WebhookService,
} from '../../src/index.js';
import { POSTGRES_URL } from '../support/backend.js';
import { TestReceiver } from '../support/receiver.js';

const NAME = `usher_host_${randomBytes(5).toString('hex')}`;
const NO_TABLES = /usherMigrations/;

const hostOptions = (more: Partial<DataSourceOptions> = {}): DataSourceOptions =>
  ({
    type: 'postgres',
    url: `${POSTGRES_URL}/${NAME}`,
    entityPrefix: 'cinema_',
    entities: usherEntities,
    migrations: usherMigrations,
    ...more,
  }) as DataSourceOptions;

const usherOptions = (dataSource: DataSource): UsherOptions => ({
  environment: 'sandbox',
  masterKeys: `test:${Buffer.alloc(32, 7).toString('base64')}`,
  database: { dataSource },
  notifyUrls: { allowPrivate: true },
});

async function administer(statement: string): Promise<void> {
  const client = new pg.Client(`${POSTGRES_URL}/postgres`);
  await client.connect();
  await client.query(statement).finally(() => client.end());
}

@Global()
@Module({
  providers: [{ provide: EventEmitter2, useFactory: () => new EventEmitter2({ wildcard: true }) }],
  exports: [EventEmitter2],
})
class HostEvents {}

const dataSources: DataSource[] = [];
const applications: INestApplication[] = [];

/** Remembers the data source, because an application that is refused does not close it. */
async function opened(options?: DataSourceOptions): Promise<DataSource> {
  const dataSource = await new DataSource(options!).initialize();
  dataSources.push(dataSource);
  return dataSource;
}

async function start(options = hostOptions()): Promise<INestApplication> {
  @Module({
    imports: [
      HostEvents,
      TypeOrmModule.forRootAsync({ useFactory: () => options, dataSourceFactory: opened }),
      UsherModule.forRootAsync({ inject: [getDataSourceToken()], useFactory: usherOptions }),
      OrdersModule,
      WebhookModule,
    ],
  })
  class HostModule {}
  const application = await NestFactory.create(HostModule, { logger: false, abortOnError: false });
  applications.push(application);
  return application.init();
}

describe("an application with Usher's tables in its own data source", () => {
  let receiver: TestReceiver;
  let migrated: DataSource;

  beforeAll(async () => {
    receiver = await TestReceiver.start();
    await administer(`CREATE DATABASE ${NAME}`);
    migrated = await new DataSource(hostOptions()).initialize();
  });
  afterAll(async () => {
    receiver.close();
    for (const application of applications) await application.close();
    for (const dataSource of dataSources) if (dataSource.isInitialized) await dataSource.destroy();
    await migrated.destroy();
    await administer(`DROP DATABASE ${NAME} WITH (FORCE)`);
  });

  test('is refused without usherEntities', async () => {
    await expect(start(hostOptions({ entities: [] }))).rejects.toThrow('add usherEntities to its entities');
  });

  test('is refused before usherMigrations were run', async () => {
    await expect(start()).rejects.toThrow(NO_TABLES);
  });

  test('is refused before the queue has its tables', async () => {
    await migrated.runMigrations();
    await expect(start()).rejects.toThrow('call migrateUsherQueue() with the options of UsherModule first');
  });

  test('delivers with its entityPrefix and without a queue address, and keeps its own emitter', async () => {
    await migrateUsherQueue(usherOptions(migrated));
    const application = await start();
    expect(application.get(EventEmitter2)).toBe(application.select(HostEvents).get(EventEmitter2));
    const { client } = await application.get(ClientsService, { strict: false }).create('Aggregator', receiver.url);
    const request = { referenceId: 'Host-1', clientId: client.id, data: { key: 'Host-1' } };
    await application.get(WebhookService, { strict: false }).notify(request);
    await receiver.waitFor('Host-1');
    const tables = (await migrated.query(
      `SELECT table_name FROM information_schema.tables WHERE table_name LIKE '%usher_client'`,
    )) as { table_name: string }[];
    expect(tables).toEqual([{ table_name: 'cinema_usher_client' }]);

    const dataSource = application.get(DataSource);
    let isAliveAtTheEnd = false;
    const destroy = dataSource.destroy.bind(dataSource);
    let calls = 0;
    dataSource.destroy = async () => {
      calls += 1;
      isAliveAtTheEnd = dataSource.isInitialized;
      await destroy();
    };
    await application.close();
    expect([calls, isAliveAtTheEnd]).toEqual([1, true]);
  });
});
