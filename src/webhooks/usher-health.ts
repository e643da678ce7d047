import { Inject, Injectable, Logger } from '@nestjs/common';
import { z } from 'zod';
import type { DataSource } from 'typeorm';
import { Client } from '../clients/client.entity.js';
import { dialectOf, tableOf, USHER_DATA_SOURCE } from '../database/data-source.js';
import { pendingMigrations } from '../database/migrator.js';
import { checkWritable, runSql } from '../database/statements/statement.js';
import { validated } from '../http/problem.js';
import { QUEUE_CONNECTIONS, type QueueConnections } from '../queue/queue-connections.js';
import { RepeatedWarnings } from '../queue/repeated-warnings.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../usher.options.js';
import { withTimeout } from '../values/duration.js';
import { Webhook } from './webhook.entity.js';

const CHECK_TIMEOUT_MS = 3_000;
/** More due notifications than this are not counted. */
export const MAX_COUNTED = 100_000;

/** The state of the database, the queue and the deliveries. */
export interface HealthFacts {
  /** Whether the database accepts writes. */
  database: boolean;
  /** Whether the queue accepts jobs. Only deliveries need it: without it notifications wait in the database. */
  queue: boolean;
  /** Names of the migrations that the database lacks; null if it does not answer. */
  pendingMigrations: string[] | null;
  /** How many milliseconds the oldest due notification has waited. 0: none is due. Null: the database does not answer. */
  oldestDueMs: number | null;
}

/** What a health indicator of @nestjs/terminus returns for its key. */
export type HealthStatus = HealthFacts & { status: 'up' | 'down' };

/** Pending webhooks whose next attempt is due. */
export interface Due {
  /** {@link MAX_COUNTED} stands for that many or more. */
  count: number;
  oldestAgeMs: number;
}

const CHECK = z.strictObject({
  maxOldestDueMs: z.custom<number>((ms) => typeof ms === 'number' && ms >= 0, 'must be at least 0').default(Infinity),
});

/** Whether Usher can do its work, for the health checks of an application and of the server. */
@Injectable()
export class UsherHealth {
  private readonly warnings = new RepeatedWarnings(new Logger('Usher health'));

  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    @Inject(QUEUE_CONNECTIONS) private readonly connections: QueueConnections,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {}

  /** Never rejects. What does not answer within three seconds is down, and the log says why. */
  async facts(): Promise<HealthFacts> {
    const [database, queue, pending, due] = await Promise.all([
      this.isWritable(),
      this.isQueueReady(),
      this.pendingMigrations(),
      this.answer('due notifications', this.due()),
    ]);
    return { database, queue, pendingMigrations: pending, oldestDueMs: due && due.oldestAgeMs };
  }

  /**
   * The facts as a health indicator of @nestjs/terminus: `() => usherHealth.check('usher')`. Its status is `down` while the
   * database accepts no writes or lacks a migration; in a process that delivers also while the queue accepts no jobs, or the
   * oldest due notification has waited longer than `maxOldestDueMs` (default: any time).
   */
  async check(key: string, options: { maxOldestDueMs?: number } = {}): Promise<Record<string, HealthStatus>> {
    const { maxOldestDueMs } = validated(CHECK, options);
    const facts = await this.facts();
    const { database, queue, pendingMigrations, oldestDueMs } = facts;
    const isDelivering = queue && (oldestDueMs ?? 0) <= maxOldestDueMs;
    const isUp = database && pendingMigrations?.length === 0 && (isDelivering || !this.options.deliver);
    return { [key]: { status: isUp ? 'up' : 'down', ...facts } };
  }

  /** Whether the database accepts writes and has every migration. */
  async isDatabaseReady(): Promise<boolean> {
    const [isWritable, pending] = await Promise.all([this.isWritable(), this.pendingMigrations()]);
    if (pending && pending.length > 0) this.warnings.warn(`${pending.length} migration(s) are missing`);
    return isWritable && pending?.length === 0;
  }

  /** Whether the queue accepts jobs. */
  isQueueReady(): Promise<boolean> {
    return this.succeeds('queue', this.connections.probe());
  }

  /** How many notifications are due and how late they are. Reads only the index usher_webhook_due; rejects if no writes are accepted. */
  async due(): Promise<Due> {
    await checkWritable(this.dataSource, Client);
    const { now } = dialectOf(this.dataSource);
    const { rows } = await runSql(
      this.dataSource,
      () => `
        SELECT COUNT(*) AS count, ${now} - MIN(next_attempt_at) AS age FROM (
          SELECT next_attempt_at FROM ${tableOf(this.dataSource, Webhook)}
          WHERE status = 'PENDING' AND next_attempt_at <= ${now} ORDER BY next_attempt_at LIMIT ${MAX_COUNTED}) AS due`,
    );
    return { count: Number(rows[0]?.count), oldestAgeMs: Number(rows[0]?.age ?? 0) };
  }

  private isWritable(): Promise<boolean> {
    return this.succeeds('database', checkWritable(this.dataSource, Client));
  }

  private pendingMigrations(): Promise<string[] | null> {
    return this.answer('migrations', pendingMigrations(this.dataSource));
  }

  private async succeeds(part: string, check: Promise<unknown>): Promise<boolean> {
    return (
      (await this.answer(
        part,
        check.then(() => true),
      )) ?? false
    );
  }

  /** Null if the part fails or does not answer in time. */
  private async answer<T>(part: string, check: Promise<T>): Promise<T | null> {
    try {
      return await withTimeout(check, CHECK_TIMEOUT_MS);
    } catch (error) {
      this.warnings.warn(`${part}: ${(error as Error).message}`);
      return null;
    }
  }
}
