import 'reflect-metadata';
import { type INestApplicationContext, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { HealthCheckService, TerminusModule } from '@nestjs/terminus';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { DataSource } from 'typeorm';
import {
  ClientsService,
  USHER_DATA_SOURCE,
  UsherHealth,
  UsherModule,
  usherMigrations,
  WebhookModule,
  WebhookService,
} from '../../src/index.js';
import { type Backend, createBackend } from '../support/backend.js';
import { optionsOn } from './host-parts.js';

let backend: Backend;
let application: INestApplicationContext;
let dataSource: DataSource;
beforeAll(async () => {
  backend = await createBackend();
  @Module({
    imports: [
      TerminusModule.forRoot({ logger: false }),
      // It delivers nothing, so that a notification stays due.
      UsherModule.forRoot({ ...optionsOn(backend), deliver: false }),
      WebhookModule,
    ],
  })
  class HostModule {}
  application = await NestFactory.createApplicationContext(HostModule, { logger: false, abortOnError: false });
  dataSource = application.get(USHER_DATA_SOURCE);
});
afterAll(async () => {
  await application.close();
  await backend.drop();
});

const health = () => application.get(UsherHealth, { strict: false });
const checked = () =>
  application.get(HealthCheckService).check([() => health().check('usher', { maxOldestDueMs: 60_000 })]);
const UP = { database: true, queue: true, pendingMigrations: [] };

test('a health check of terminus shows that Usher is up, with its facts', async () => {
  expect(await checked()).toMatchObject({
    status: 'ok',
    details: { usher: { status: 'up', ...UP, oldestDueMs: 0 } },
  });
});

test('the facts tell how long the oldest due notification has waited', async () => {
  const { client } = await application
    .get(ClientsService, { strict: false })
    .create('Partner', 'http://127.0.0.1:4999/n');
  const { webhook } = await application
    .get(WebhookService, { strict: false })
    .notify({ referenceId: 'Late-1', clientId: client.id, data: {} });
  await dataSource.query(
    `UPDATE usher_webhook SET next_attempt_at = next_attempt_at - 3600000 WHERE id = '${webhook.id}'`,
  );
  const { oldestDueMs } = await health().facts();
  expect(oldestDueMs).toBeGreaterThanOrEqual(3_600_000);
  // This process does not deliver, so another one is late.
  expect(await health().check('usher', { maxOldestDueMs: 60_000 })).toMatchObject({ usher: { status: 'up' } });
});

test('a missing migration is named, and the status is down', async () => {
  const [{ name = '' } = {}] = usherMigrations;
  await dataSource.query(`UPDATE usher_migration SET name = 'other' WHERE name = '${name}'`);
  await expect(checked()).rejects.toMatchObject({
    response: { error: { usher: { status: 'down', pendingMigrations: [name] } } },
  });
  await dataSource.query(`UPDATE usher_migration SET name = '${name}' WHERE name = 'other'`);
});

test('a database that does not answer is reported as down, and the other facts are still there', async () => {
  await dataSource.destroy();
  expect(await health().facts()).toMatchObject({ database: false, pendingMigrations: null, oldestDueMs: null });
  await expect(checked()).rejects.toMatchObject({ response: { error: { usher: { status: 'down' } } } });
});
