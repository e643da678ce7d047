import type { DataSource } from 'typeorm';
import { AuditLog } from '../../src/audit/audit.module.js';
import { AfterCommit, inTransaction } from '../../src/database/sql.js';
import { NOTIFY_ORDER_COMPLETION } from '../../src/values/notification.js';
import { loadConfig } from '../../src/server/settings/settings.js';
import type { SigningSecrets } from '../../src/webhooks/deliver/signing.js';
import { DeliveryQueue } from '../../src/webhooks/queue/delivery.queue.js';
import { WebhookRecorder } from '../../src/webhooks/record/webhook.recorder.js';
import { DeliveryPauses } from '../../src/webhooks/delivery-pauses.js';
import { type PauseSubject, Webhook } from '../../src/webhooks/webhook.entity.js';
import { WebhookService } from '../../src/webhooks/webhook.service.js';
import type { Random } from '../support/random.js';
import { BullModel, QUEUE_DOWN, STATES } from './bull-model.js';
import { crowdOrders, healthyOrders, type SimulatedOrder } from './crowd.js';
import { type Paused, violations } from './invariants.js';
import { BEHAVIOUR_COUNT, Receivers } from './receivers.js';
import { SimulatedWorker, SLOTS, type World } from './simulated-worker.js';
import type { VirtualTime } from './virtual-time.js';

export const START = Date.UTC(2026, 0, 1);
const MINUTE = 60_000;
const FAULTS_MS = 14 * MINUTE;
const RESEND_EVERY_MS = 20_000;
/** Enough time after the last fault for five attempts that each wait for a lease and a retry run. */
const END_MS = 90 * MINUTE;
const ORDERS = 10;
const WORKERS = 3;
/** How often a schedule has a crowd of receivers that never answer instead of faults. */
const CROWD_CHANCE = 0.15;
const CROWD_ARRIVES_MS = 5_000;
export const CLIENT = 'simulated';

/** Models an order service whose transaction fails after the completion. */
class RolledBack extends Error {}

function ignoreRolledBack(error: unknown): void {
  if (!(error instanceof RolledBack)) throw error;
}

/** One schedule: the orders, the workers and the faults of a seed. */
export class Schedule {
  private readonly world: World;
  private readonly recorder: WebhookRecorder;
  private readonly service: WebhookService;
  private readonly pauses: DeliveryPauses;
  private readonly paused: Paused[] = [];
  private readonly workers: SimulatedWorker[] = [];
  private readonly completed = new Set<string>();
  /** What stopped a retry run, apart from a queue that was down. */
  private readonly faults: string[] = [];
  private readonly hasCrowd: boolean;

  constructor(dataSource: DataSource, time: VirtualTime, random: Random) {
    const config = loadConfig({ QUEUE_URL: 'redis://127.0.0.1', WEBHOOK_CONCURRENCY: String(SLOTS) });
    const queue = new BullModel(time);
    const deliveryQueue = new DeliveryQueue(queue as never, config);
    const secrets = { of: () => Promise.resolve({ current: 'secret', next: null }) } as unknown as SigningSecrets;
    const receivers = new Receivers(time, random, config.retry.timeoutMs);
    this.hasCrowd = random.chance(CROWD_CHANCE);
    const chances = this.hasCrowd
      ? { crashChance: 0, pauseChance: 0 }
      : { crashChance: random.pick([0, 0.01, 0.05]), pauseChance: random.pick([0, 0.05]) };
    const recorded = { recordedAt: new Map(), outcomeAt: new Map(), nextAttempts: [] };
    this.world = {
      time,
      random,
      queue,
      receivers,
      dataSource,
      config,
      deliveryQueue,
      secrets,
      ...recorded,
      ...chances,
    };
    const afterCommit = new AfterCommit();
    this.recorder = new WebhookRecorder(afterCommit, deliveryQueue, config);
    const audit = new AuditLog(dataSource, afterCommit, config);
    this.pauses = new DeliveryPauses(dataSource, audit);
    this.service = new WebhookService(dataSource, this.recorder, null as never, audit, config);
  }

  async play(): Promise<string[]> {
    const { time, dataSource, receivers, queue, recordedAt, outcomeAt, nextAttempts } = this.world;
    for (let i = 0; i < WORKERS; i += 1) this.startWorker();
    if (this.hasCrowd) this.planCrowd();
    else this.planFaultyRun();
    this.everySecond(START);
    this.everyRetryRun(START);
    time.at(START + FAULTS_MS, () => this.endFaults());
    await time.runUntil(START + FAULTS_MS);
    await time.runUntil(START + END_MS, () => this.isOver());
    // Lets requests that are still open at a receiver end within this schedule.
    await time.runUntil(time.now + MINUTE);
    const broken = await violations(dataSource, {
      log: receivers.log,
      completed: this.completed,
      jobs: queue.everAdded,
      recordedAt,
      outcomeAt,
      nextAttempts,
      // An eighth of four slots is less than one, so it is one in each worker.
      crowdShare: WORKERS,
      paused: this.paused,
    });
    return [...this.faults, ...broken];
  }

  private startWorker(): void {
    const skewMs = this.world.random.between(-MINUTE, MINUTE);
    const worker = new SimulatedWorker(this.world, skewMs, () => {
      this.workers.splice(this.workers.indexOf(worker), 1);
      this.world.time.at(this.world.time.now + this.world.random.between(500, 20_000), () => this.startWorker());
    });
    this.workers.push(worker);
  }

  private planFaultyRun(): void {
    for (let i = 0; i < ORDERS; i += 1) this.planOrder(i);
    this.planFaults();
    this.planPauses();
  }

  /** A crowd at the start, and orders of a healthy receiver at any time. */
  private planCrowd(): void {
    const { time, random } = this.world;
    const plan = (order: SimulatedOrder, withinMs: number): void =>
      time.at(START + random.between(0, withinMs), () => void this.complete(order, false));
    for (const order of crowdOrders(random)) plan(order, CROWD_ARRIVES_MS);
    for (const order of healthyOrders()) plan(order, FAULTS_MS);
  }

  /** Completes an order one to three times at random moments and sometimes resends it later. */
  private planOrder(number: number): void {
    const { time, random } = this.world;
    const reference = `order-${number}`;
    const behaviour = random.between(0, BEHAVIOUR_COUNT - 1);
    const order = { reference, client: CLIENT, url: `https://receiver-${behaviour}.example/${behaviour}` };
    for (let times = random.pick([1, 1, 2, 3]); times > 0; times -= 1) {
      time.at(START + random.between(0, FAULTS_MS), () => void this.complete(order, random.chance(0.2)));
    }
    if (random.chance(0.5)) time.at(START + 8 * MINUTE, () => void this.resend(reference));
  }

  private async complete({ reference, client, url }: SimulatedOrder, isRolledBack: boolean): Promise<void> {
    const { time, dataSource } = this.world;
    const request = {
      referenceId: reference,
      eventType: NOTIFY_ORDER_COMPLETION,
      clientId: client,
      notifyUrl: url,
      body: '{}',
      ownerId: null,
      resendOf: null,
      requestId: null,
    };
    await time.work(() =>
      inTransaction(dataSource, async (manager) => {
        await this.recorder.record(manager, request);
        if (isRolledBack) throw new RolledBack();
      }).catch(ignoreRolledBack),
    );
    if (!isRolledBack) this.completed.add(reference);
  }

  /** Tries until the webhook has FAILED, so that the resend often comes within the minimum interval. */
  private async resend(reference: string): Promise<void> {
    const { time } = this.world;
    const isResent = await time.work(async () => {
      const [newest] = await this.service.find(reference);
      // A webhook that is not FAILED is refused, which is also tested.
      return newest ? this.service.resend(newest.id).then(Boolean, () => false) : false;
    });
    const next = time.now + RESEND_EVERY_MS;
    if (!isResent && next < START + FAULTS_MS) time.at(next, () => void this.resend(reference));
  }

  private planFaults(): void {
    const { time, random, queue } = this.world;
    const during = (): number => START + random.between(0, FAULTS_MS);
    for (let i = random.between(0, 3); i > 0; i -= 1) time.at(during(), () => queue.wipe());
    for (let i = random.between(0, 2); i > 0; i -= 1) time.at(during(), () => queue.lose(random.pick(STATES)));
    for (let i = random.between(0, 2); i > 0; i -= 1) {
      const from = during();
      time.at(from, () => queue.setDown(true));
      time.at(from + random.between(1_000, 3 * MINUTE), () => queue.setDown(false));
    }
    for (let i = random.between(0, 4); i > 0; i -= 1) time.at(during(), () => this.workers[0]?.crash());
  }

  /** Pauses the client or a host for up to a few minutes, and sometimes a second time while the first one is released. */
  private planPauses(): void {
    const { time, random } = this.world;
    const client: PauseSubject = `client:${CLIENT}`;
    for (let i = random.between(0, 2); i > 0; i -= 1) {
      const host: PauseSubject = `host:receiver-${random.between(0, BEHAVIOUR_COUNT - 1)}.example`;
      const subject = random.pick([client, host]);
      const from = START + random.between(0, FAULTS_MS);
      time.at(from, () => void this.pause(subject, from + random.between(1_000, 8 * MINUTE)));
    }
  }

  private async pause(subject: PauseSubject, until: number): Promise<void> {
    const { time } = this.world;
    if (this.paused.some((one) => one.subject === subject && one.until > time.now)) return;
    await time.work(() => this.pauses.pause(subject, 'simulated'));
    this.paused.push({ subject, from: time.now, until });
    time.at(until, () => void time.work(() => this.pauses.resume(subject)));
  }

  private endFaults(): void {
    this.world.crashChance = 0;
    this.world.pauseChance = 0;
    this.world.queue.setDown(false);
  }

  private everySecond(moment: number): void {
    const { time, queue } = this.world;
    time.at(moment, () => {
      if (moment % 30_000 === 0) queue.checkStalled();
      for (const worker of this.workers) worker.takeJobs();
      this.everySecond(moment + 1_000);
    });
  }

  /** At every even minute one random worker does the retry run. */
  private everyRetryRun(moment: number): void {
    const { time, random, queue } = this.world;
    time.at(moment, () => {
      const worker = this.workers.length > 0 ? random.pick(this.workers) : undefined;
      const run = Math.round(moment / (2 * MINUTE));
      if (worker) {
        void time
          .work(() => worker.retryRun.process({ data: { run } } as never))
          .then(
            () => queue.addRun(`run-${run}`),
            ({ message }: Error) => message !== QUEUE_DOWN && this.faults.push(`a retry run failed: ${message}`),
          );
      }
      this.everyRetryRun(moment + 2 * MINUTE);
    });
  }

  private async isOver(): Promise<boolean> {
    const { dataSource, time } = this.world;
    if (time.now % MINUTE !== 0) return false;
    return (await dataSource.getRepository(Webhook).countBy({ status: 'PENDING' })) === 0;
  }
}
