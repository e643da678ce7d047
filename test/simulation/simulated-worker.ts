import { Registry } from 'prom-client';
import { type DataSource, In } from 'typeorm';
import type { Workers } from '../../src/queue/workers.js';
import type { Config } from '../../src/server/settings/settings.js';
import type { ClaimResult, DeliveryState } from '../../src/webhooks/deliver/claim.js';
import { MetricsRegistry } from '../../src/telemetry/metrics.module.js';
import { ContactMessages } from '../../src/webhooks/contact/contact-messages.js';
import { ClaimStore } from '../../src/webhooks/deliver/claim.store.js';
import { DatabaseOutage } from '../../src/webhooks/deliver/database-outage.js';
import { DeliveryEvents, WebhookEndedEmitter } from '../../src/webhooks/deliver/delivery-events.js';
import { Delivery } from '../../src/webhooks/deliver/delivery.js';
import { OutcomeStore } from '../../src/webhooks/deliver/outcome.store.js';
import type { SigningSecrets } from '../../src/webhooks/deliver/signing.js';
import { backoffStrategy, DeliveryProcessor } from '../../src/webhooks/queue/delivery.processor.js';
import type { DeliveryQueue } from '../../src/webhooks/queue/delivery.queue.js';
import { RetryRun } from '../../src/webhooks/queue/retry-run.js';
import type { ResendWork } from '../../src/webhooks/undelivered/resend-work.js';
import { Sweep } from '../../src/webhooks/queue/sweep.js';
import type { NotificationSender, SignedRequest } from '../../src/webhooks/transport/notification-sender.js';
import type { Outcome } from '../../src/webhooks/transport/outcome.js';
import { Webhook } from '../../src/webhooks/webhook.entity.js';
import type { Random } from '../support/random.js';
import type { NextAttempt } from './invariants.js';
import type { BullModel, ModelJob, Owner } from './bull-model.js';
import type { Receivers } from './receivers.js';
import type { VirtualTime } from './virtual-time.js';

export interface World {
  time: VirtualTime;
  random: Random;
  queue: BullModel;
  receivers: Receivers;
  dataSource: DataSource;
  config: Config;
  deliveryQueue: DeliveryQueue;
  secrets: SigningSecrets;
  /** By webhook: when its SUCCESS was recorded. */
  recordedAt: Map<string, number>;
  /** By webhook and number of the attempt: when its outcome was recorded. */
  outcomeAt: Map<string, number>;
  /** The next attempts that recorded failures led to. */
  nextAttempts: NextAttempt[];
  /** The probability of a crash and of a pause at each step of a process. */
  crashChance: number;
  pauseChance: number;
}

export const SLOTS = 4;
/** An application without listeners. */
const NO_LISTENERS = { hasListeners: () => false, emitAndWait: () => Promise.resolve() };
/** A promise that never settles, for the calls of a crashed process. */
const never = <T>(): Promise<T> => new Promise<T>(() => undefined);

/** One worker process: the real processor and stores, with a possible crash or pause at every step. */
export class SimulatedWorker implements Owner {
  private isAlive = true;
  private running = 0;
  private readonly processor: DeliveryProcessor;
  readonly retryRun: RetryRun;

  constructor(
    private readonly world: World,
    readonly skewMs: number,
    private readonly onCrash: () => void,
  ) {
    const { dataSource, config, deliveryQueue, secrets, queue } = world;
    const events = new DeliveryEvents(new Registry(), new WebhookEndedEmitter(NO_LISTENERS));
    const claims = new ClaimStore(dataSource, config, events);
    const outcomes = new OutcomeStore(dataSource, config);
    const outage = new DatabaseOutage(dataSource);
    const steps = {
      claim: (ids: string[]): Promise<ClaimResult[]> => this.step(() => claims.claim(ids), 'after'),
      release: (claim: Parameters<ClaimStore['release']>[0]): Promise<void> => this.step(() => claims.release(claim)),
      record: (finished: Parameters<OutcomeStore['record']>[0]): Promise<DeliveryState[]> =>
        this.step(() => this.record(outcomes, finished), 'before'),
      send: (request: SignedRequest): Promise<Outcome> => this.send(request),
    };
    const delivery = new Delivery(
      steps as unknown as ClaimStore,
      steps as unknown as OutcomeStore,
      secrets,
      steps as unknown as NotificationSender,
      events,
      outage,
    );
    // Not used, because the queue model gives out the jobs.
    const workers = {} as Workers;
    this.processor = new DeliveryProcessor(delivery, config, workers, outage);
    const messages = new ContactMessages(dataSource, config, null, new MetricsRegistry());
    const sweep = new Sweep(dataSource, deliveryQueue, config, events);
    const resends = { running: () => Promise.resolve([]) } as unknown as ResendWork;
    this.retryRun = new RetryRun(queue as never, sweep, resends, messages, config, workers);
  }

  /** Notes when each SUCCESS was written, because an earlier attempt may end after it, and each next attempt. */
  private async record(
    outcomes: OutcomeStore,
    finished: Parameters<OutcomeStore['record']>[0],
  ): Promise<DeliveryState[]> {
    const { dataSource, time, recordedAt, outcomeAt, nextAttempts } = this.world;
    const states = await outcomes.record(finished);
    for (const { claim } of finished) outcomeAt.set(`${claim.webhook.id} ${claim.attempt}`, time.now);
    const attempts = new Map(finished.map(({ claim }) => [claim.webhook.id, claim.attempt]));
    const rows = await dataSource.getRepository(Webhook).findBy({ id: In([...attempts.keys()]) });
    for (const { id, status, attempts: claimed, nextAttemptAt } of rows) {
      if (status === 'SUCCESS' && !recordedAt.has(id)) recordedAt.set(id, time.now);
      const isOfThisAttempt = nextAttemptAt !== null && claimed === attempts.get(id);
      if (isOfThisAttempt) nextAttempts.push({ webhook: id, attempt: claimed, at: nextAttemptAt });
    }
    return states;
  }

  crash(): void {
    if (!this.isAlive) return;
    this.isAlive = false;
    this.world.queue.abandon(this);
    this.onCrash();
  }

  /** Takes jobs from the queue while slots are free. */
  takeJobs(): void {
    while (this.isAlive && this.running < SLOTS) {
      const job = this.world.queue.take(this, this.world.time.now + this.skewMs);
      if (!job) return;
      this.running += 1;
      void this.run(job);
    }
  }

  private async run(job: ModelJob): Promise<void> {
    const error = await this.processor.process(job as never, 'token').then(
      () => null,
      (thrown: unknown) => thrown,
    );
    if (!this.isAlive) return;
    this.running -= 1;
    this.world.queue.settle(job, this, error, (attemptsMade, failure) =>
      backoffStrategy(attemptsMade, undefined, failure),
    );
    this.takeJobs();
  }

  private async send(request: SignedRequest): Promise<Outcome> {
    if (!this.isAlive) return never();
    const outcome = await this.world.receivers.post(request);
    await this.maybeCrash();
    return this.isAlive ? outcome : never();
  }

  /** A database step. The process may crash before it, or after it without getting the result. */
  private async step<T>(real: () => Promise<T>, mayPause: 'before' | 'after' | 'never' = 'never'): Promise<T> {
    await this.maybeCrash();
    if (mayPause === 'before') await this.maybePause();
    if (!this.isAlive) return never();
    const result = await this.world.time.work(real);
    await this.maybeCrash();
    if (mayPause === 'after') await this.maybePause();
    return this.isAlive ? result : never();
  }

  /** A pause shorter or longer than a lease. In half of the pauses the worker cannot renew its locks. */
  private async maybePause(): Promise<void> {
    const { random, time, queue, pauseChance } = this.world;
    if (!random.chance(pauseChance)) return;
    if (random.chance(0.5)) queue.abandon(this);
    await time.sleep(random.between(1_000, 250_000));
    if (this.isAlive) queue.renew(this);
  }

  private async maybeCrash(): Promise<void> {
    if (this.world.random.chance(this.world.crashChance)) this.crash();
  }
}
