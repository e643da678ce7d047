import 'reflect-metadata';
import { type BeforeApplicationShutdown, type INestApplicationContext, Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { EventEmitter2 } from '@nestjs/event-emitter';
import { getDataSourceToken } from '@nestjs/typeorm';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';
import type { DataSource } from 'typeorm';
import { USHER_OPTIONS } from '../../src/usher.options.js';
import {
  ClientsModule,
  ClientsService,
  loadConfig,
  OnWebhookEnded,
  UsherModule,
  WebhookEnded,
  WebhookModule,
  WebhookService,
} from '../../src/index.js';
import { ClaimStore } from '../../src/webhooks/deliver/claim.store.js';
import { DeliveryEvents } from '../../src/webhooks/deliver/delivery-events.js';
import { Webhook } from '../../src/webhooks/webhook.entity.js';
import { WebhookEndedEmitter } from '../../src/webhooks/webhook-ended.event.js';
import { type Backend, createBackend } from '../support/backend.js';
import { eventually } from '../support/eventually.js';
import { answer, TestReceiver } from '../support/receiver.js';
import { SHORT_TIMES } from '../support/usher.js';

/** Notes what it heard, after a look into the database. It throws at Bad references, and is long about Slow ones. */
@Injectable()
class Ledger implements BeforeApplicationShutdown {
  private begunToClose!: () => void;
  private readonly closing = new Promise<void>((resolve) => (this.begunToClose = resolve));
  readonly heard: WebhookEnded[] = [];

  constructor(private readonly webhooks: WebhookService) {}

  @OnWebhookEnded()
  async note(ended: WebhookEnded): Promise<void> {
    if (ended.referenceId.startsWith('Slow')) await this.untilClosing();
    const [webhook] = await this.webhooks.find(ended.referenceId);
    if (webhook?.status !== ended.status) throw new Error('told before it was committed');
    this.heard.push(ended);
    if (ended.referenceId.startsWith('Bad')) throw new Error('the ledger is full');
  }

  beforeApplicationShutdown(): void {
    this.begunToClose();
  }

  private async untilClosing(): Promise<void> {
    await this.closing;
    for (let looks = 0; looks < 20; looks += 1) await this.webhooks.find('any');
  }

  of(reference: string): WebhookEnded[] {
    return this.heard.filter(({ referenceId }) => referenceId === reference);
  }
}

let backend: Backend;
let receiver: TestReceiver;
let application: INestApplicationContext;
let ledger: Ledger;
let webhooks: WebhookService;
let clientId: string;

beforeAll(async () => {
  receiver = await TestReceiver.start();
  backend = await createBackend();
  @Module({
    imports: [
      UsherModule.forRoot(loadConfig({ ...SHORT_TIMES, ...backend.settings, WEBHOOK_MAX_ATTEMPTS: '2' })),
      ClientsModule,
      WebhookModule,
    ],
    providers: [Ledger],
  })
  class CinemaModule {}
  application = await NestFactory.createApplicationContext(CinemaModule, { logger: false, abortOnError: false });
  ledger = application.get(Ledger);
  webhooks = application.get(WebhookService, { strict: false });
  const { client } = await application.get(ClientsService, { strict: false }).create('Aggregator', receiver.url);
  clientId = client.id;
});
afterAll(async () => {
  receiver.close();
  await backend.drop();
});

const notify = (referenceId: string) => webhooks.notify({ referenceId, clientId, data: { key: referenceId } });
const heard = (reference: string) =>
  eventually(`${reference} is heard of`, () => (ledger.of(reference).length > 0 ? ledger.of(reference) : null));

describe('the end of a webhook is told to the application', () => {
  test('SUCCESS, once, when it is recorded', async () => {
    const { id, referenceId } = await notify('Good-1');
    expect(await heard(referenceId)).toEqual([new WebhookEnded(id, referenceId, clientId, 'SUCCESS', 1, null)]);
  });

  test('FAILED, once, after the last attempt alone; and then the SUCCESS of its resend', async () => {
    receiver.behaviour = answer(500);
    const { id, referenceId } = await notify('Good-2');
    expect(await heard(referenceId)).toEqual([new WebhookEnded(id, referenceId, clientId, 'FAILED', 2, null)]);
    receiver.behaviour = answer(200);
    const again = await webhooks.resend(id);
    await eventually('its resend is heard of', () => ledger.of(referenceId).length === 2);
    expect(ledger.of(referenceId)[1]).toEqual(new WebhookEnded(again.id, referenceId, clientId, 'SUCCESS', 1, id));
  });

  test('FAILED by a last attempt that a crash cut off', async () => {
    const { id, referenceId } = await notify('Good-3');
    await heard(referenceId);
    const dataSource = application.get<DataSource>(getDataSourceToken());
    // As a worker that died during the last attempt leaves it.
    await dataSource.manager.update(Webhook, { id }, { status: 'PENDING', attempts: 2, nextAttemptAt: 1 });
    const endings = new WebhookEndedEmitter(application.get(EventEmitter2));
    const events = new DeliveryEvents(new Registry(), endings);
    await new ClaimStore(dataSource, application.get(USHER_OPTIONS), events).claim([id]);
    await endings.onApplicationShutdown();
    expect(ledger.of(referenceId)[1]).toEqual(new WebhookEnded(id, referenceId, clientId, 'FAILED', 2, null));
  });

  test('and a listener that throws changes nothing of the delivery', async () => {
    const { referenceId } = await notify('Bad-1');
    await heard(referenceId);
    const [webhook] = await webhooks.find(referenceId);
    expect([webhook?.status, webhook?.attempts, receiver.of(referenceId).length]).toEqual(['SUCCESS', 1, 1]);
  });

  test('even when the application closes meanwhile', async () => {
    const { referenceId } = await notify('Slow-1');
    await eventually('it is delivered', async () => (await webhooks.find(referenceId))[0]?.status === 'SUCCESS');
    await application.close();
    expect(ledger.of(referenceId)).toHaveLength(1);
  });
});
