import 'reflect-metadata';
import { type BeforeApplicationShutdown, type INestApplicationContext, Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { getDataSourceToken } from '@nestjs/typeorm';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';
import type { DataSource } from 'typeorm';
import { UsherEmitter } from '../../src/events/events.js';
import { USHER_OPTIONS } from '../../src/usher.options.js';
import {
  ClientsModule,
  ClientsService,
  OnWebhookEnded,
  WebhookEnded,
  WebhookModule,
  WebhookService,
} from '../../src/index.js';
import { loadConfig } from '../../src/server/settings/settings.js';
import { usherModuleFor } from '../../src/usher.module.js';
import { ClaimStore } from '../../src/webhooks/deliver/claim.store.js';
import { DeliveryEvents, WebhookEndedEmitter } from '../../src/webhooks/deliver/delivery-events.js';
import { Webhook } from '../../src/webhooks/webhook.entity.js';
import { type Backend, createBackend } from '../support/backend.js';
import { eventually } from '../support/eventually.js';
import { answer, TestReceiver } from '../support/receiver.js';
import { SHORT_TIMES } from '../support/usher.js';

/** A listener that records events after reading the database. It throws for Bad references and is slow for Slow ones. */
@Injectable()
class Ledger implements BeforeApplicationShutdown {
  private onClosing!: () => void;
  private readonly closing = new Promise<void>((resolve) => (this.onClosing = resolve));
  readonly events: WebhookEnded[] = [];

  constructor(private readonly webhooks: WebhookService) {}

  @OnWebhookEnded()
  async note(ended: WebhookEnded): Promise<void> {
    if (ended.referenceId.startsWith('Slow')) await this.untilClosing();
    const [webhook] = await this.webhooks.find(ended.referenceId);
    if (webhook?.status !== ended.status) throw new Error('emitted before the commit');
    this.events.push(ended);
    if (ended.referenceId.startsWith('Bad')) throw new Error('the ledger is full');
  }

  beforeApplicationShutdown(): void {
    this.onClosing();
  }

  private async untilClosing(): Promise<void> {
    await this.closing;
    for (let looks = 0; looks < 20; looks += 1) await this.webhooks.find('any');
  }

  of(reference: string): WebhookEnded[] {
    return this.events.filter(({ referenceId }) => referenceId === reference);
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
      usherModuleFor(loadConfig({ ...SHORT_TIMES, ...backend.settings, WEBHOOK_MAX_ATTEMPTS: '2' })),
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

const notify = async (referenceId: string) =>
  (await webhooks.notify({ referenceId, clientId, data: { key: referenceId } })).webhook;
const endedEvents = (reference: string) =>
  eventually(`the event of ${reference} is emitted`, () =>
    ledger.of(reference).length > 0 ? ledger.of(reference) : null,
  );

describe('the application gets an event when a webhook ends:', () => {
  test('SUCCESS, once, after it is recorded', async () => {
    const { id, referenceId } = await notify('Good-1');
    expect(await endedEvents(referenceId)).toEqual([new WebhookEnded(id, referenceId, clientId, 'SUCCESS', 1, null)]);
  });

  test('FAILED, once, only after the last attempt, and then the SUCCESS of its resend', async () => {
    receiver.behaviour = answer(500);
    const { id, referenceId } = await notify('Good-2');
    expect(await endedEvents(referenceId)).toEqual([new WebhookEnded(id, referenceId, clientId, 'FAILED', 2, null)]);
    receiver.behaviour = answer(200);
    const again = await webhooks.resend(id);
    await eventually('the event of its resend is emitted', () => ledger.of(referenceId).length === 2);
    expect(ledger.of(referenceId)[1]).toEqual(new WebhookEnded(again.id, referenceId, clientId, 'SUCCESS', 1, id));
  });

  test('FAILED, after a crash cut off the last attempt', async () => {
    const { id, referenceId } = await notify('Good-3');
    await endedEvents(referenceId);
    const dataSource = application.get<DataSource>(getDataSourceToken('usher'));
    // The state after a worker stopped during the last attempt.
    await dataSource.manager.update(Webhook, { id }, { status: 'PENDING', attempts: 2, nextAttemptAt: 1 });
    const emitter = new WebhookEndedEmitter(application.get(UsherEmitter));
    const events = new DeliveryEvents(new Registry(), emitter);
    await new ClaimStore(dataSource, application.get(USHER_OPTIONS), events).claim([id]);
    await emitter.onApplicationShutdown();
    // A retry run of the application may have ended it at the same moment, and then emits the event a little later.
    await eventually('it ended again', async () => ledger.of(referenceId).length > 1);
    expect(ledger.of(referenceId)[1]).toEqual(new WebhookEnded(id, referenceId, clientId, 'FAILED', 2, null));
  });

  test('a listener that throws does not affect the delivery', async () => {
    const { referenceId } = await notify('Bad-1');
    await endedEvents(referenceId);
    const [webhook] = await webhooks.find(referenceId);
    expect([webhook?.status, webhook?.attemptCount, receiver.of(referenceId).length]).toEqual(['SUCCESS', 1, 1]);
  });

  test('even if the application closes at that moment', async () => {
    const { referenceId } = await notify('Slow-1');
    await eventually('it is delivered', async () => (await webhooks.find(referenceId))[0]?.status === 'SUCCESS');
    await application.close();
    expect(ledger.of(referenceId)).toHaveLength(1);
  });
});
