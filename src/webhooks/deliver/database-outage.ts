import { once, setMaxListeners } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { Inject, Injectable, Logger, type OnModuleDestroy } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import { Client } from '../../clients/client.entity.js';
import { USHER_DATA_SOURCE } from '../../database/data-source.js';
import { isDatabaseDown } from '../../database/errors.js';
import { checkWritable } from '../../database/statements/statement.js';
import type { Claim } from './claim.js';

const FIRST_PAUSE_MS = 500;
/** Short: once the database is back, the next retry run of any process ends an unrecorded last attempt FAILED after its lease. */
const LONGEST_PAUSE_MS = 1_000;
/** After a fault, each repetition writes a log line. */
const LONGEST_FAULT_PAUSE_MS = 10_000;
const LOG_EVERY_MS = 60_000;

/**
 * What deliveries do while the database is away. All of them wait for one query, which is repeated after a second at most,
 * and write one log line a minute together.
 */
@Injectable()
export class DatabaseOutage implements OnModuleDestroy {
  private readonly logger = new Logger('Usher delivery');
  /** Attempts that have ended but could not be recorded yet. */
  private readonly unrecorded = new Set<Claim>();
  private readonly shutdown = new AbortController();
  private outage: Promise<void> | null = null;
  private loggedAt = -Infinity;

  constructor(@Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource) {
    // Each waiting job adds one. With more than ten Node.js would warn of a leak.
    setMaxListeners(0, this.shutdown.signal);
  }

  /** Repeats `store` for as long as the process runs, because an attempt without a recorded outcome is made again. */
  async untilStored<T>(claim: Claim, store: () => Promise<T>): Promise<T> {
    for (let tried = 0; ; tried += 1) {
      try {
        const result = await store();
        this.unrecorded.delete(claim);
        return result;
      } catch (error) {
        this.unrecorded.add(claim);
        if (isDatabaseDown(error)) await this.begin(error);
        else await this.afterFault(claim, error, tried);
      }
    }
  }

  /** Notes that a query failed because the database is away. Resolves when it is back. */
  begin(error: unknown): Promise<void> {
    this.outage ??= this.untilBack(error).finally(() => (this.outage = null));
    return this.outage;
  }

  /** Resolves at once while the database answers; else when it is back, or when this process shuts down. */
  async end(): Promise<void> {
    if (!this.outage || this.hasShutDown) return;
    const over = new AbortController();
    const shutdown = once(this.shutdown.signal, 'abort', { signal: over.signal });
    await Promise.race([this.outage, shutdown]);
    // Removes the listener.
    over.abort();
  }

  onModuleDestroy(): void {
    this.shutdown.abort();
    const attempts = [...this.unrecorded].map(({ webhook, attempt }) => `${webhook.id} (attempt ${attempt})`);
    if (attempts.length > 0)
      this.logger.warn(
        `shutting down with ${attempts.length} attempt(s) that are not recorded: ${attempts.join(', ')}. This process goes on ` +
          'until they are; if it is killed, these notifications may be sent again',
      );
  }

  private async untilBack(first: unknown): Promise<void> {
    const startedAt = performance.now();
    let isLogged = false;
    let error = first;
    for (let tried = 0; ; tried += 1) {
      await this.pauseAfter(tried);
      if (this.hasShutDown && this.unrecorded.size === 0) return;
      try {
        await checkWritable(this.dataSource, Client);
        break;
      } catch (again) {
        error = again;
      }
      isLogged ||= this.mayLog;
      if (this.mayLog)
        this.log(`the database is away: ${reasonOf(error)}; ${this.unrecorded.size} attempt(s) wait to be recorded`);
    }
    const seconds = Math.ceil((performance.now() - startedAt) / 1_000);
    if (isLogged || this.mayLog) this.log(`the database was away for ${seconds} s: ${reasonOf(error)}`);
  }

  private get mayLog(): boolean {
    return performance.now() - this.loggedAt >= LOG_EVERY_MS;
  }

  private log(line: string): void {
    this.loggedAt = performance.now();
    this.logger.error(line);
  }

  /** The database answers, but refuses to record this attempt. */
  private async afterFault({ webhook, attempt }: Claim, error: unknown, tried: number): Promise<void> {
    this.logger.error(
      `webhook ${webhook.id}: recording attempt ${attempt} failed and is tried again: ${reasonOf(error)}`,
    );
    await pause(pauseMs(tried, LONGEST_FAULT_PAUSE_MS));
  }

  /** A shutdown ends the pause that is running, but not the ones after it. */
  private async pauseAfter(tried: number): Promise<void> {
    const options = this.hasShutDown ? {} : { signal: this.shutdown.signal };
    await pause(pauseMs(tried, LONGEST_PAUSE_MS), undefined, options).catch(() => undefined);
  }

  private get hasShutDown(): boolean {
    return this.shutdown.signal.aborted;
  }
}

const reasonOf = (error: unknown): string => (error as Error).message.split('\n')[0] ?? '';

/** Grows with each try. A random part is left out, so that processes do not all ask at the same moment. */
const pauseMs = (tried: number, longestMs: number): number =>
  Math.min(FIRST_PAUSE_MS * 2 ** tried, longestMs) * (1 - Math.random() / 2);
