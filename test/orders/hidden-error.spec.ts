import 'reflect-metadata';
import { type INestApplicationContext, Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { getDataSourceToken } from '@nestjs/typeorm';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { DataSource, EntityManager } from 'typeorm';
import {
  type Client,
  ClientsService,
  OnOrderCompleted,
  type OrderCompleted,
  OrdersModule,
  OrdersService,
  WebhookModule,
  WebhookService,
} from '../../src/index.js';
import { UsedForm } from '../../src/operators/operator.entity.js';
import { loadConfig } from '../../src/server/settings/settings.js';
import { usherModuleFor } from '../../src/usher.module.js';
import { Webhook } from '../../src/webhooks/webhook.entity.js';
import { type Backend, BACKEND, createBackend } from '../support/backend.js';
import { eventually } from '../support/eventually.js';
import { COMPLETION, NEW_ORDER } from '../support/usher.js';

/** A listener of the application. Its statement fails once, when the webhook is recorded, and it hides the error. */
@Injectable()
class Ledger {
  fail: ((manager: EntityManager) => Promise<unknown>) | null = null;
  readonly hidden: unknown[] = [];

  @OnOrderCompleted()
  async note({ order, manager }: OrderCompleted): Promise<void> {
    const { fail } = this;
    this.fail = null;
    if (!fail) return;
    await eventually('the webhook is recorded', () => manager.existsBy(Webhook, { referenceId: order.key }));
    await fail(manager).catch((error: unknown) => this.hidden.push(error));
  }
}

let backend: Backend;
let application: INestApplicationContext;
let dataSource: DataSource;
let orders: OrdersService;
let webhooks: WebhookService;
let ledger: Ledger;
let client: Client;

beforeAll(async () => {
  backend = await createBackend();
  const config = loadConfig({ ...backend.settings, USHER_ROLE: 'api' });
  @Module({ imports: [usherModuleFor(config), OrdersModule, WebhookModule], providers: [Ledger] })
  class LedgerModule {}
  application = await NestFactory.createApplicationContext(LedgerModule, { logger: false, abortOnError: false });
  dataSource = application.get<DataSource>(getDataSourceToken('usher'), { strict: false });
  orders = application.get(OrdersService, { strict: false });
  webhooks = application.get(WebhookService, { strict: false });
  ledger = application.get(Ledger);
  const clients = application.get(ClientsService, { strict: false });
  ({ client } = await clients.create('Partner', 'http://127.0.0.1:9999/never-called'));
});
afterAll(async () => {
  await application.close();
  await backend.drop();
});

const lock = (manager: EntityManager, digest: string) =>
  manager.findOneOrFail(UsedForm, { where: { digest }, lock: { mode: 'pessimistic_write' } });

/** Makes `manager` the victim of a deadlock, because the other transaction has written more. */
async function becomeVictim(manager: EntityManager): Promise<void> {
  await dataSource.transaction(async (other) => {
    await other.insert(
      UsedForm,
      Array.from({ length: 100 }, (_, index) => ({ digest: `written ${index}`, expiresAt: 1 })),
    );
    await lock(other, 'second');
    await lock(manager, 'first');
    const [victim] = await Promise.allSettled([lock(manager, 'second'), lock(other, 'first')]);
    if (victim.status === 'rejected') throw victim.reason;
  });
}

const isMysql = BACKEND === 'mariadb';

test('a listener that hides the error of its statement loses no notification', async () => {
  const { key } = await orders.create(client, NEW_ORDER);
  await dataSource.manager.insert(UsedForm, [
    { digest: 'first', expiresAt: 1 },
    { digest: 'second', expiresAt: 1 },
  ]);
  ledger.fail = isMysql ? becomeVictim : (manager) => manager.query('SELECT * FROM no_such_table');
  const completing = orders.complete(key, COMPLETION);
  // A deadlock has rolled the transaction back, and the completion is repeated. Postgres refuses it instead.
  if (isMysql) expect(await completing).toMatchObject({ status: 'COMPLETED' });
  else await expect(completing).rejects.toThrow('current transaction is aborted');
  expect(ledger.hidden).toEqual([expect.objectContaining(isMysql ? { code: 'ER_LOCK_DEADLOCK' } : { code: '42P01' })]);
  const recorded = await webhooks.find(key);
  expect({ status: (await orders.get(client, key)).status, recorded: recorded.length }).toEqual(
    isMysql ? { status: 'COMPLETED', recorded: 1 } : { status: 'PENDING', recorded: 0 },
  );
});
