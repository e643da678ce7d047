import { Logger } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { Client } from '../../src/clients/client.entity.js';
import { AfterCommit } from '../../src/database/after-commit.js';
import { dataSourceOptions } from '../../src/database/data-source-options.js';
import { type EmbeddedPostgres, openEmbeddedPostgres } from '../../src/database/embedded/index.js';
import { inTransaction } from '../../src/database/sql.js';
import { NOTIFY_ORDER_COMPLETION } from '../../src/protocol/notification.js';
import { loadConfig } from '../../src/server/settings/settings.js';
import type { SigningSecrets } from '../../src/webhooks/deliver/signing.js';
import { DeliveryQueue } from '../../src/webhooks/queue/delivery.queue.js';
import { WebhookRecorder } from '../../src/webhooks/record/webhook.recorder.js';
import { Webhook, WebhookAttempt } from '../../src/webhooks/webhook.entity.js';
import { WebhookService } from '../../src/webhooks/webhook.service.js';
import { Random } from '../support/random.js';
import { BullModel } from './bull-model.js';
import { violations } from './invariants.js';
import { Receivers } from './receivers.js';
import { SimulatedWorker, type World } from './simulated-worker.js';
import { VirtualTime } from './virtual-time.js';

const START = Date.UTC(2026, 0, 1);
const MINUTE = 60_000;
const FAULTS_MS = 14 * MINUTE;
/** Enough time after the last fault for five attempts that each wait for a lease and a retry run. */
const END_MS = 90 * MINUTE;
const ORDERS = 10;
const WORKERS = 3;
const CLIENT = 'simulated';

/** Runs schedules on one database: the real delivery code, a virtual clock, a queue model and scripted receivers. */
export class Simulation {
  private constructor(
    private readonly embedded: EmbeddedPostgres,
    private readonly dataSource: DataSource,
  ) {}

  /** `folder` contains a migrated embedded database that no other process uses. */
  static async open(folder: string): Promise<Simulation> {
    Logger.overrideLogger(false);
    const config = loadConfig({ DATABASE_URL: `embedded:${folder}` });
    const embedded = await openEmbeddedPostgres(folder, 'own');
    const options = await dataSourceOptions(config, embedded, 'service');
    // Postgres looks up functions in `simulated` first, so the database uses the virtual clock.
    const extra = { ...(options as { extra: object }).extra, options: '-c search_path=simulated,pg_catalog,public' };
    const dataSource = await new DataSource({
      ...options,
      extra,
      entities: [Webhook, WebhookAttempt, Client],
    } as never).initialize();
    await dataSource.query('CREATE SCHEMA IF NOT EXISTS simulated');
    await dataSource.query(
      `CREATE OR REPLACE FUNCTION simulated.statement_timestamp() RETURNS timestamptz STABLE LANGUAGE sql
       AS $$ SELECT to_timestamp(current_setting('simulated.now')::numeric / 1000) $$`,
    );
    return new Simulation(embedded, dataSource);
  }

  async close(): Promise<void> {
    await this.dataSource.destroy();
    await this.embedded.close();
  }

  /** Runs one schedule and returns the violations. */
  async play(seed: number): Promise<string[]> {
    await this.reset();
    const time = new VirtualTime(START, (now) => this.setDatabaseTime(now));
    const real = { monotonic: performance.now.bind(performance), wall: Date.now };
    performance.now = Date.now = () => time.now;
    try {
      return await new Schedule(this.dataSource, time, new Random(seed)).play();
    } finally {
      performance.now = real.monotonic;
      Date.now = real.wall;
    }
  }

  private async reset(): Promise<void> {
    await this.dataSource.query('TRUNCATE usher_webhook, usher_webhook_attempt, usher_client');
    this.dataSource.subscribers.length = 0;
    await this.dataSource.getRepository(Client).insert({
      id: CLIENT,
      name: 'Simulated',
      notifyUrl: 'https://receiver.example/0',
      grantTypes: [],
      createdAt: START,
      disabledAt: null,
    });
  }

  private async setDatabaseTime(now: number): Promise<void> {
    await this.dataSource.query("SELECT set_config('simulated.now', $1, false)", [String(now)]);
  }
}

/** Models an order service whose transaction fails after the completion. */
class RolledBack extends Error {}

function ignoreRolledBack(error: unknown): void {
  if (!(error instanceof RolledBack)) throw error;
}

class Schedule {
  private readonly world: World;
  private readonly recorder: WebhookRecorder;
  private readonly service: WebhookService;
  private readonly workers: SimulatedWorker[] = [];
  private readonly completed = new Set<string>();

  constructor(dataSource: DataSource, time: VirtualTime, random: Random) {
    const config = loadConfig({});
    const queue = new BullModel(time);
    const deliveryQueue = new DeliveryQueue(queue as never, config);
    const secrets = { of: () => Promise.resolve({ current: 'secret', next: null }) } as unknown as SigningSecrets;
    const receivers = new Receivers(time, random, config.retry.timeoutMs);
    const chances = { crashChance: random.pick([0, 0.01, 0.05]), pauseChance: random.pick([0, 0.05]) };
    const recordedAt = new Map<string, number>();
    this.world = { time, random, queue, receivers, dataSource, config, deliveryQueue, secrets, recordedAt, ...chances };
    this.recorder = new WebhookRecorder(new AfterCommit(dataSource), deliveryQueue, config);
    this.service = new WebhookService(dataSource, this.recorder, null as never);
  }

  async play(): Promise<string[]> {
    const { time, dataSource, receivers, queue, recordedAt } = this.world;
    for (let i = 0; i < WORKERS; i += 1) this.startWorker();
    for (let i = 0; i < ORDERS; i += 1) this.planOrder(i);
    this.planFaults();
    this.everySecond(START);
    this.everyRetryRun(START);
    time.at(START + FAULTS_MS, () => this.endFaults());
    await time.runUntil(START + FAULTS_MS);
    await time.runUntil(START + END_MS, () => this.isOver());
    // Lets requests that are still open at a receiver end within this schedule.
    await time.runUntil(time.now + MINUTE);
    return violations(dataSource, { log: receivers.log, completed: this.completed, jobs: queue.everAdded, recordedAt });
  }

  private startWorker(): void {
    const skewMs = this.world.random.between(-MINUTE, MINUTE);
    const worker = new SimulatedWorker(this.world, skewMs, () => {
      this.workers.splice(this.workers.indexOf(worker), 1);
      this.world.time.at(this.world.time.now + this.world.random.between(500, 20_000), () => this.startWorker());
    });
    this.workers.push(worker);
  }

  /** Completes an order one to three times at random moments and sometimes resends it later. */
  private planOrder(number: number): void {
    const { time, random } = this.world;
    const reference = `order-${number}`;
    const url = `https://receiver.example/${random.between(0, 6)}`;
    for (let times = random.pick([1, 1, 2, 3]); times > 0; times -= 1) {
      time.at(START + random.between(0, FAULTS_MS), () => void this.complete(reference, url));
    }
    if (random.chance(0.5)) time.at(START + random.between(8, 13) * MINUTE, () => void this.resend(reference));
  }

  private async complete(reference: string, notifyUrl: string): Promise<void> {
    const { time, random, dataSource } = this.world;
    const request = {
      referenceId: reference,
      eventType: NOTIFY_ORDER_COMPLETION,
      clientId: CLIENT,
      notifyUrl,
      body: '{}',
      resendOf: null,
      requestId: null,
    };
    const isRolledBack = random.chance(0.2);
    const recording = inTransaction(dataSource, async (manager) => {
      await this.recorder.record(manager, request);
      if (isRolledBack) throw new RolledBack();
    });
    await time.work(() => recording.catch(ignoreRolledBack));
    if (!isRolledBack) this.completed.add(reference);
  }

  private async resend(reference: string): Promise<void> {
    const { time } = this.world;
    await time.work(async () => {
      const [newest] = await this.service.find(reference);
      // A webhook that is not FAILED is refused, which is also tested.
      if (newest) await this.service.resend(newest.id).catch(() => undefined);
    });
  }

  private planFaults(): void {
    const { time, random, queue } = this.world;
    const during = (): number => START + random.between(0, FAULTS_MS);
    for (let i = random.between(0, 3); i > 0; i -= 1) time.at(during(), () => queue.wipe());
    for (let i = random.between(0, 2); i > 0; i -= 1) {
      const from = during();
      time.at(from, () => queue.setDown(true));
      time.at(from + random.between(1_000, 3 * MINUTE), () => queue.setDown(false));
    }
    for (let i = random.between(0, 4); i > 0; i -= 1) time.at(during(), () => this.workers[0]?.crash());
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
            () => undefined,
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
