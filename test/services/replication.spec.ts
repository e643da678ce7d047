import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { DataSource, type DataSourceOptions } from 'typeorm';
import { SecretRotation } from '../../src/clients/secrets/secret-rotation.js';
import {
  AuthModule,
  ClientsService,
  migrateUsherQueue,
  OrderRoutesModule,
  OrdersModule,
  OrdersService,
  usherEntities,
  usherMigrations,
  UsherModule,
  type UsherOptions,
  WebhookModule,
  WebhookRoutesModule,
} from '../../src/index.js';
import { BACKEND, REDIS_URL } from '../support/backend.js';
import { eventually } from '../support/eventually.js';
import { OwnDatabase } from '../support/own-database.js';
import { TestReceiver } from '../support/receiver.js';
import { basic, COMPLETION, NEW_ORDER } from '../support/usher.js';

const INTERNAL = { user: 'internal', password: 'internal' };

let primary: OwnDatabase;
/** A replica that never catches up: it has the tables, but no row. */
let replica: OwnDatabase;
let dataSource: DataSource;
let application: NestFastifyApplication;
let receiver: TestReceiver;

const at = (address: string): object => {
  const { hostname: host, port, username, pathname } = new URL(address);
  return { host, port: Number(port), username, database: pathname.slice(1) };
};

const optionsFor = (connection: object): DataSourceOptions =>
  ({
    type: BACKEND === 'mariadb' ? 'mariadb' : 'postgres',
    entities: usherEntities,
    migrations: usherMigrations,
    ...connection,
  }) as DataSourceOptions;

async function migrated(database: OwnDatabase): Promise<void> {
  const own = await new DataSource(optionsFor(at(database.url))).initialize();
  await own.runMigrations();
  await own.destroy();
}

const options = (): UsherOptions => ({
  environment: 'sandbox',
  masterKeys: `test:${Buffer.alloc(32, 7).toString('base64')}`,
  database: { dataSource },
  queue: { prefix: primary.name.replaceAll('_', '-'), ...(BACKEND === 'mariadb' && { url: REDIS_URL }) },
  retry: { timeoutMs: 1_000, retryEveryMs: 1_000, minIntervalMs: 500 },
  notifyUrls: { allowPrivate: true },
  internal: INTERNAL,
});

beforeAll(async () => {
  [primary, replica] = [await OwnDatabase.create(), await OwnDatabase.create()];
  await Promise.all([primary, replica].map(migrated));
  const replication = { master: at(primary.url), slaves: [at(replica.url)] };
  dataSource = await new DataSource(optionsFor({ replication })).initialize();
  await migrateUsherQueue(options());
  @Module({
    imports: [
      UsherModule.forRoot(options()),
      AuthModule,
      OrdersModule,
      OrderRoutesModule,
      WebhookModule,
      WebhookRoutesModule,
    ],
  })
  class HostModule {}
  application = await NestFactory.create<NestFastifyApplication>(HostModule, new FastifyAdapter(), { logger: false });
  await application.listen(0, '127.0.0.1');
  receiver = await TestReceiver.start();
});
afterAll(async () => {
  receiver.close();
  await application.close();
  await dataSource.destroy();
  await Promise.all([primary.drop(), replica.drop()]);
});

const get = <T>(service: new (...injected: never[]) => T): T => application.get<T>(service, { strict: false });

async function call(method: string, path: string, authorization: string, body?: object) {
  const response = await fetch((await application.getUrl()) + path, {
    method,
    headers: { authorization, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as Record<string, never> };
}

test('everything that was written is known at once, even if a replica lags', async () => {
  expect(await dataSource.getRepository('Client').count()).toBe(0);
  const { client, secret } = await get(ClientsService).create('One', receiver.url);
  const first = await call('POST', '/auth/token', basic(client.id, secret), { grant_type: 'client_credentials' });
  expect(first.status).toBe(200);
  const { access_token: token, refresh_token } = first.body;
  const refresh = { grant_type: 'refresh_token', refresh_token };
  expect((await call('POST', '/auth/refresh', basic(client.id, secret), refresh)).status).toBe(200);
  const introspect = () => call('POST', '/auth/introspect', basic(INTERNAL.user, INTERNAL.password), { token });
  expect((await introspect()).body).toMatchObject({ active: true, client_id: client.id });

  const created = await call('POST', '/movie-orders', `Bearer ${token}`, NEW_ORDER);
  expect(created.status).toBe(201);
  const { key } = created.body;
  expect((await call('GET', `/movie-orders/${key}`, `Bearer ${token}`)).body).toEqual(created.body);
  await get(OrdersService).complete(key!, COMPLETION);
  await receiver.waitFor(key!);
  await eventually('the delivery is listed', async () => {
    const { body } = await call('GET', `/webhooks?referenceId=${encodeURIComponent(key!)}`, `Bearer ${token}`);
    return (body as unknown as { data: { status: string }[] }).data[0]?.status === 'SUCCESS';
  });

  const { secret: rotated } = await get(SecretRotation).rotate(client.id, 0);
  const grant = { grant_type: 'client_credentials' };
  expect((await call('POST', '/auth/token', basic(client.id, secret), grant)).status).toBe(401);
  expect((await call('POST', '/auth/token', basic(client.id, rotated), grant)).status).toBe(200);
  await get(ClientsService).setDisabled(client.id, true);
  expect((await call('POST', '/auth/token', basic(client.id, rotated), grant)).status).toBe(401);
  expect((await introspect()).body).toEqual({ active: false });
});
