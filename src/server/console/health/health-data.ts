import { statfs } from 'node:fs/promises';
import { Inject, Injectable } from '@nestjs/common';
import type { Cluster, Redis } from 'ioredis';
import type { DataSource } from 'typeorm';
import { USHER_DATA_SOURCE } from '../../../database/data-source.js';
import { clockOf } from '../../../database/database-clock.js';
import { pendingMigrations, usherMigrations } from '../../../database/migrator.js';
import { QUEUE_CONNECTIONS, type QueueConnections } from '../../../queue/queue-connections.js';
import { withTimeout } from '../../../values/duration.js';
import { CachedQuery } from '../../health/cached-query.js';
import { type Config, SERVER_CONFIG } from '../../settings/settings.js';

/** Below the time after which a {@link CachedQuery} gives up, so that the page has the reason. */
const ANSWER_MS = 1_500;

/** The answer of a server, or why there is none. */
export interface Checked<T> {
  answer?: T;
  reason?: string;
}

/** What only the page on health asks for. No query waits longer than two seconds, so that the page works without servers. */
@Injectable()
export class HealthData {
  readonly queries = {
    database: new CachedQuery(() => checked(this.readDatabase())),
    queue: new CachedQuery(() => checked(this.readQueue())),
    /** Free bytes where an embedded database is; null elsewhere. */
    freeDisk: new CachedQuery(() => this.readFreeDisk()),
  };

  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    @Inject(QUEUE_CONNECTIONS) private readonly connections: QueueConnections,
    @Inject(SERVER_CONFIG) private readonly config: Config,
  ) {}

  private async readDatabase() {
    const { manager } = this.dataSource;
    const startedAt = performance.now();
    const [row] = await manager.query<{ version: string }[]>('SELECT VERSION() AS version');
    const answerMs = performance.now() - startedAt;
    const { clockAheadMs } = await clockOf(this.dataSource);
    const missing = await pendingMigrations(this.dataSource);
    const done = usherMigrations.map(({ name }) => name).filter((name) => !missing.includes(name));
    return { version: row?.version, answerMs, clockAheadMs, migrations: { done, missing } };
  }

  /** Its version is null where the queue is not on Redis. */
  private async readQueue() {
    const startedAt = performance.now();
    await this.connections.probe();
    const answerMs = performance.now() - startedAt;
    const { redis, producer } = this.connections;
    if (redis === null) return { version: null, answerMs };
    // A provider may forbid INFO.
    const info = await (producer as Redis | Cluster).info('server').catch(() => '');
    return { version: /redis_version:(\S+)/.exec(info)?.[1] ?? 'unknown', answerMs };
  }

  private async readFreeDisk(): Promise<number | null> {
    const { database } = this.config;
    if (database.kind !== 'embedded') return null;
    const { bavail, bsize } = await statfs(database.folder);
    return bavail * bsize;
  }
}

async function checked<T>(query: Promise<T>): Promise<Checked<T>> {
  try {
    return { answer: await withTimeout(query, ANSWER_MS) };
  } catch (error) {
    const { message, code } = error as Error & { code?: string };
    // The error of a connection to several addresses has a code only.
    return { reason: message || (code ?? 'it does not answer') };
  }
}
