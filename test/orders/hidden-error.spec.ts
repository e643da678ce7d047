import 'reflect-metadata';
import { ConflictException, type INestApplicationContext, Injectable, Module } from '@nestjs/common';
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
import { MovieOrder } from '../../src/orders/movie-order.entity.js';
import { loadConfig } from '../../src/server/settings/settings.js';
import { usherModuleFor } from '../../src/usher.module.js';
import { orderIdOf } from '../../src/values/identifier.js';
import { Webhook } from '../../src/webhooks/webhook.entity.js';
import { type Backend, BACKEND, createBackend } from '../support/backend.js';
import { eventually } from '../support/eventually.js';
import { COMPLETION, NEW_ORDER } from '../support/usher.js';

/** A listener of the application, which does once what a test gives it. */
@Injectable()
class Ledger {
  once: ((event: OrderCompleted) => Promise<void>) | null = null;

  @OnOrderCompleted()
  async note(event: OrderCompleted): Promise<void> {
    const { once } = this;
    this.once = null;
    await once?.(event);
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
  await dataSource.manager.insert(UsedForm, [
    { digest: 'first', expiresAt: 1 },
    { digest: 'second', expiresAt: 1 },
  ]);
});
afterAll(async () => {
  await application.close();
  await backend.drop();
});

/** What an order and its webhooks are after its completion. */
async function stateOf(key: string): Promise<object> {
  const { status } = await orders.get(client, key);
  return { status, webhooks: (await webhooks.find(key)).length };
}

const lock = (manager: EntityManager, digest: string) =>
  manager.findOneOrFail(UsedForm, { where: { digest }, lock: { mode: 'pessimistic_write' } });

/** A transaction that has written these rows is not the victim of a deadlock. */
const WRITTEN = Array.from({ length: 100 }, (_, index) => ({ digest: `written ${index}`, expiresAt: 1 }));

/** Makes `manager` the victim of a deadlock. */
async function becomeVictim(manager: EntityManager): Promise<void> {
  await dataSource.transaction(async (other) => {
    await other.insert(UsedForm, WRITTEN);
    await lock(other, 'second');
    await lock(manager, 'first');
    const [victim] = await Promise.allSettled([lock(manager, 'second'), lock(other, 'first')]);
    if (victim.status === 'rejected') throw victim.reason;
  });
}

const isMysql = BACKEND === 'mariadb';

test('a listener that hides the error of its statement loses no notification', async () => {
  const { key } = await orders.create(client, NEW_ORDER);
  const fail = isMysql ? becomeVictim : (manager: EntityManager) => manager.query('SELECT * FROM no_such_table');
  const hidden: unknown[] = [];
  ledger.once = async ({ manager }) => {
    await eventually('the webhook is recorded', () => manager.existsBy(Webhook, { referenceId: key }));
    await fail(manager).catch((error: unknown) => hidden.push(error));
  };
  const completing = orders.complete(key, COMPLETION);
  // A deadlock has rolled the transaction back, and the completion is repeated. Postgres refuses it instead.
  if (isMysql) expect(await completing).toMatchObject({ status: 'COMPLETED' });
  else await expect(completing).rejects.toThrow('current transaction is aborted');
  expect(hidden).toEqual([expect.objectContaining(isMysql ? { code: 'ER_LOCK_DEADLOCK' } : { code: '42P01' })]);
  expect(await stateOf(key)).toEqual(
    isMysql ? { status: 'COMPLETED', webhooks: 1 } : { status: 'PENDING', webhooks: 0 },
  );
});

test('a listener whose first statement fails, and which refuses the order then, leaves no notification behind', async () => {
  const { key } = await orders.create(client, NEW_ORDER);
  const refuse = (): never => {
    throw new ConflictException('the seats are taken');
  };
  ledger.once = ({ manager }) => {
    if (!isMysql) return manager.query('SELECT * FROM no_such_table').catch(refuse);
    const id = orderIdOf(key) ?? '';
    // The completion has locked the order.
    const deadlock = lock(manager, 'second');
    void other.manager.findOne(MovieOrder, { where: { id }, lock: { mode: 'pessimistic_write' } }).catch(() => null);
    return deadlock.then(() => undefined, refuse);
  };
  const other = dataSource.createQueryRunner();
  if (isMysql) {
    await other.startTransaction();
    await other.manager.insert(UsedForm, WRITTEN);
    await lock(other.manager, 'second');
  }
  await expect(orders.complete(key, COMPLETION)).rejects.toThrow('the seats are taken');
  if (isMysql) await other.rollbackTransaction();
  await other.release();
  expect(await stateOf(key)).toEqual({ status: 'PENDING', webhooks: 0 });
});
