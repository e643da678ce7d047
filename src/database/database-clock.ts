import { Inject, Injectable } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import { USHER_DATA_SOURCE } from './data-source.js';
import { databaseNow } from './sql.js';

/** The database's time, and how far this process's clock is ahead of it. */
export async function clockOf({ manager }: DataSource): Promise<{ now: number; clockAheadMs: number }> {
  const askedAt = Date.now();
  const now = await databaseNow(manager);
  return { now, clockAheadMs: Math.round((askedAt + Date.now()) / 2 - now) };
}

/** How long the monotonic clock of this process continues the database's time. */
const MAX_AGE_MS = 4_000;

/**
 * The database's time without a query for each use, for ids and creation times. It is at most one round trip behind the
 * database, never ahead of it. The database itself decides whether something has expired.
 */
@Injectable()
export class DatabaseClock {
  private reading = { databaseMs: 0, at: -Infinity };
  private asking: Promise<void> | null = null;

  constructor(@Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource) {}

  /** In milliseconds since 1970. */
  async now(): Promise<number> {
    if (performance.now() - this.reading.at > MAX_AGE_MS) await this.read();
    const { databaseMs, at } = this.reading;
    return Math.floor(databaseMs + performance.now() - at);
  }

  /** Takes the time from the answer to another statement, which has just arrived. */
  readonly take = (databaseMs: number): void => void (this.reading = { databaseMs, at: performance.now() });

  private read(): Promise<void> {
    this.asking ??= databaseNow(this.dataSource.manager)
      .then(this.take)
      .finally(() => (this.asking = null));
    return this.asking;
  }
}
