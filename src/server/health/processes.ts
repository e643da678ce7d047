import { hostname } from 'node:os';
import { InjectQueue } from '@nestjs/bullmq';
import {
  type BeforeApplicationShutdown,
  Inject,
  Injectable,
  Logger,
  type OnApplicationBootstrap,
} from '@nestjs/common';
import type { Queue } from 'bullmq';
import { type DataSource, LessThan, MoreThan } from 'typeorm';
import { dialectOf, USHER_DATA_SOURCE } from '../../database/data-source.js';
import { ServiceProcess } from '../../database/service-process.entity.js';
import { databaseNow } from '../../database/sql.js';
import { insertRows } from '../../database/statements/statement.js';
import { QUEUE_CONNECTIONS, type QueueConnections } from '../../queue/queue-connections.js';
import { newId } from '../../values/identifier.js';
import { VERSION } from '../../values/version.js';
import { WEBHOOK_QUEUE } from '../../webhooks/queue/delivery.queue.js';
import { type Config, SERVER_CONFIG } from '../settings/settings.js';
import { withTimeout } from '../../values/duration.js';
import { CachedQuery } from './cached-query.js';

const BEAT_MS = 60_000;
/** After two missed beats a process counts as ended. */
const ALIVE_MS = 2.5 * BEAT_MS;
const FORGOTTEN_MS = 3_600_000;
const FAREWELL_MS = 1_000;
const NAME_LENGTH = 255;

export type ListedProcess = ServiceProcess & { isAlive: boolean };

export interface Processes {
  /** Those of the server that run, and those that stopped without a word within an hour. */
  processes: ListedProcess[];
  /** Workers of deliveries, of applications too, as Redis lists their connections. Null: only the table knows. */
  connectedWorkers: number | null;
}

/** Which processes run. Each one writes its row once a minute. */
@Injectable()
export class ProcessList implements OnApplicationBootstrap, BeforeApplicationShutdown {
  readonly id: string;
  readonly all = new CachedQuery(() => this.read());
  private readonly logger = new Logger('Usher health');
  private timer: NodeJS.Timeout | null = null;
  private startedAt: number | null = null;

  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    @Inject(SERVER_CONFIG) private readonly config: Config,
    @Inject(QUEUE_CONNECTIONS) private readonly connections: QueueConnections,
    @InjectQueue(WEBHOOK_QUEUE) private readonly deliveries: Queue,
  ) {
    this.id = newId(config.environment, Date.now());
  }

  async onApplicationBootstrap(): Promise<void> {
    this.timer = setInterval(() => void this.beat(), BEAT_MS).unref();
    await withTimeout(this.beat(), FAREWELL_MS).catch(() => undefined);
  }

  async beforeApplicationShutdown(): Promise<void> {
    if (this.timer) clearInterval(this.timer);
    await withTimeout(this.dataSource.manager.delete(ServiceProcess, { id: this.id }), FAREWELL_MS).catch(
      () => undefined,
    );
  }

  /** Nothing depends on it, so it is tried again only at the next beat. */
  private async beat(): Promise<void> {
    try {
      const { manager } = this.dataSource;
      const { now, clockAheadMs } = await clockOf(this.dataSource);
      if (this.startedAt === null) await manager.delete(ServiceProcess, { seenAt: LessThan(now - FORGOTTEN_MS) });
      this.startedAt ??= now;
      const name = `${hostname()}:${process.pid}`.slice(-NAME_LENGTH);
      const times = { startedAt: this.startedAt, seenAt: now, clockAheadMs };
      const onConflict = dialectOf(this.dataSource).upsert(['id'], ['seen_at', 'clock_ahead']);
      const row = { id: this.id, name, role: this.config.role, version: VERSION, ...times };
      await insertRows(this.dataSource, ServiceProcess, [row], onConflict);
    } catch (error) {
      this.logger.debug(`the row of this process was not written: ${(error as Error).message}`);
    }
  }

  private async read(): Promise<Processes> {
    const { manager } = this.dataSource;
    const now = await databaseNow(manager);
    const rows = await manager.find(ServiceProcess, {
      where: { seenAt: MoreThan(now - FORGOTTEN_MS) },
      order: { startedAt: 'DESC' },
      take: 100,
    });
    const processes = rows.map((row) => ({ ...row, isAlive: row.seenAt > now - ALIVE_MS }));
    return { processes, connectedWorkers: await this.connectedWorkers() };
  }

  /** A Redis of a provider may forbid the list of its connections. */
  private async connectedWorkers(): Promise<number | null> {
    if (this.connections.redis === null) return null;
    return withTimeout(this.deliveries.getWorkersCount(), FAREWELL_MS).catch(() => null);
  }
}

/** The database's time, and how far this process's clock is ahead of it. */
export async function clockOf({ manager }: DataSource): Promise<{ now: number; clockAheadMs: number }> {
  const askedAt = Date.now();
  const now = await databaseNow(manager);
  return { now, clockAheadMs: Math.round((askedAt + Date.now()) / 2 - now) };
}

/** How many workers of deliveries are known to run. */
export function workersOf({ processes, connectedWorkers }: Processes): number {
  return connectedWorkers ?? processes.filter(({ role, isAlive }) => isAlive && role !== 'api').length;
}
