import 'reflect-metadata';
import { randomBytes } from 'node:crypto';
import { Global, type INestApplication, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { EventEmitter2 } from '@nestjs/event-emitter';
import { getDataSourceToken, TypeOrmModule } from '@nestjs/typeorm';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { LATEST_SCHEMA_VERSION } from 'bullmq';
import { DataSource, type DataSourceOptions, type MigrationInterface, type QueryRunner } from 'typeorm';
import {
  ClientsService,
  OrdersModule,
  usherEntities,
  usherMigrations,
  UsherModule,
  type UsherOptions,
  usherQueueMigration,
  WebhookModule,
  WebhookService,
} from '../../src/index.js';
import { POSTGRES_URL } from '../support/backend.js';
import { TestReceiver } from '../support/receiver.js';

const NAME = `usher_host_${randomBytes(5).toString('hex')}`;
const PREFIX = 'usher-sandbox';
const QUEUE_MIGRATION = `UsherQueue_usher_sandbox_${1767225600000 + LATEST_SCHEMA_VERSION}`;
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
    await expect(start()).rejects.toThrow(`run the migration ${QUEUE_MIGRATION}`);
  });

  test('prepares the queue with its own migrations, whatever the mode, and the search path stays', async () => {
    for (const migrationsTransactionMode of ['none', 'all'] as const) {
      await administer(`CREATE DATABASE ${NAME}_${migrationsTransactionMode}`);
      class Later1767225699999 implements MigrationInterface {
        async up(runner: QueryRunner): Promise<void> {
          await runner.query('CREATE TABLE later (id integer)');
        }
        async down(): Promise<void> {}
      }
      const dataSource = await new DataSource(
        hostOptions({
          url: `${POSTGRES_URL}/${NAME}_${migrationsTransactionMode}`,
          migrations: [...usherMigrations, usherQueueMigration({ prefix: PREFIX }), Later1767225699999],
          migrationsTransactionMode,
        } as never),
      ).initialize();
      const done = await dataSource.runMigrations();
      expect(done.map(({ name }) => name)).toContain(QUEUE_MIGRATION);
      expect(await dataSource.query(`SELECT to_regclass('public.later') IS NOT NULL AS found`)).toEqual([
        { found: true },
      ]);
      await dataSource.destroy();
      await administer(`DROP DATABASE ${NAME}_${migrationsTransactionMode}`);
    }
  });

  test('is refused by the name of the migration after an update of BullMQ that needs newer tables', async () => {
    const dataSource = await new DataSource(
      hostOptions({ migrations: [...usherMigrations, usherQueueMigration({ prefix: PREFIX })] }),
    ).initialize();
    await dataSource.runMigrations();
    const newest = `(SELECT max(version) FROM usher_sandbox.migration)`;
    const [kept] = (await dataSource.query(
      `DELETE FROM usher_sandbox.migration WHERE version = ${newest} RETURNING *`,
    )) as [[Record<string, unknown>]];
    await expect(start()).rejects.toThrow(`run the migration ${QUEUE_MIGRATION}`);
    await dataSource.query(
      'INSERT INTO usher_sandbox.migration VALUES ($1, $2, $3)',
      Object.values(kept[0]).slice(0, 3),
    );
    await dataSource.destroy();
  });

  test('delivers with its entityPrefix and without a queue address, and keeps its own emitter', async () => {
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
