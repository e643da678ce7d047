import { statfs } from 'node:fs/promises';
import { Inject, Injectable } from '@nestjs/common';
import type { Cluster, Redis } from 'ioredis';
import type { DataSource } from 'typeorm';
import { Client } from '../../../clients/client.entity.js';
import { checkWritable, USHER_DATA_SOURCE } from '../../../database/data-source.js';
import { pendingMigrations, usherMigrations } from '../../../database/migrator.js';
import { QUEUE_CONNECTIONS, type QueueConnections } from '../../../queue/queue-connections.js';
import { CachedQuery, withTimeout } from '../../health/cached-query.js';
import { clockOf } from '../../health/processes.js';
import { type Config, SERVER_CONFIG } from '../../settings/settings.js';

/** Below the time after which a {@link CachedQuery} gives up, so that the page has the reason. */
const ANSWER_MS = 1_500;

/** The answer of a server, or why there is none. */
export type Checked<T> = { isUp: true; answer: T } | { isUp: false; reason: string };

export interface DatabaseHealth {
  version: string;
  /** How long a query takes, in milliseconds. */
  answerMs: number;
  /** How far the clock of this process is ahead. */
  clockAheadMs: number;
  migrations: { done: string[]; missing: string[] };
  isWritable: boolean;
}

export interface QueueHealth {
  /** Null where the queue is not on Redis. */
  redisVersion: string | null;
  answerMs: number;
}

/** What only the page on health asks for. No query waits longer than two seconds, so that the page works without servers. */
@Injectable()
export class HealthData {
  readonly database: CachedQuery<Checked<DatabaseHealth>>;
  readonly queue: CachedQuery<Checked<QueueHealth>>;
  /** Free bytes where an embedded database is; null elsewhere. */
  readonly freeDisk: CachedQuery<{ bytes: number | null }>;

  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    @Inject(QUEUE_CONNECTIONS) private readonly connections: QueueConnections,
    @Inject(SERVER_CONFIG) private readonly config: Config,
  ) {
    this.database = new CachedQuery(() => checked(this.readDatabase()));
    this.queue = new CachedQuery(() => checked(this.readQueue()));
    this.freeDisk = new CachedQuery(async () => ({ bytes: await this.readFreeDisk() }));
  }

  private async readDatabase(): Promise<DatabaseHealth> {
    const { manager } = this.dataSource;
    const startedAt = performance.now();
    const [row] = await manager.query<{ version: string }[]>('SELECT VERSION() AS version');
    const answerMs = performance.now() - startedAt;
    const { clockAheadMs } = await clockOf(this.dataSource);
    const missing = await pendingMigrations(this.dataSource);
    const done = usherMigrations.map(({ name }) => name).filter((name) => !missing.includes(name));
    const isWritable = await checkWritable(this.dataSource, Client).then(
      () => true,
      () => false,
    );
    return { version: row?.version ?? '', answerMs, clockAheadMs, migrations: { done, missing }, isWritable };
  }

  private async readQueue(): Promise<QueueHealth> {
    const startedAt = performance.now();
    await this.connections.probe();
    const answerMs = performance.now() - startedAt;
    const { redis, producer } = this.connections;
    if (redis === null) return { redisVersion: null, answerMs };
    // A provider may forbid INFO.
    const info = await (producer as Redis | Cluster).info('server').catch(() => '');
    return { redisVersion: /redis_version:(\S+)/.exec(info)?.[1] ?? 'unknown', answerMs };
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
    return { isUp: true, answer: await withTimeout(query, ANSWER_MS) };
  } catch (error) {
    const { message, code } = error as Error & { code?: string };
    // The error of a connection to several addresses has a code only.
    return { isUp: false, reason: message === '' ? (code ?? 'it does not answer') : message };
  }
}
