import { setTimeout as pause } from 'node:timers/promises';
import { Controller, Get, Logger, type BeforeApplicationShutdown, Inject, type OnModuleDestroy } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import { Client } from '../../clients/client.entity.js';
import { KeyCheck } from '../../clients/keys/key-rotation.js';
import { checkWritable, USHER_DATA_SOURCE } from '../../database/data-source.js';
import { pendingMigrations } from '../../database/migrator.js';
import { type Problem, unavailable } from '../../http/problem.js';
import { QUEUE_CONNECTIONS, type QueueConnections } from '../../queue/queue-connections.js';
import { withTimeout } from '../../values/duration.js';
import { type Config, SERVER_CONFIG } from '../settings/settings.js';

const CHECK_TIMEOUT_MS = 3_000;

@Controller('health')
export class HealthController implements OnModuleDestroy, BeforeApplicationShutdown {
  /** Whether a shutdown has begun. From then on the process is not ready, and each response closes its connection. */
  isShuttingDown = false;
  private readonly logger = new Logger('Usher health');

  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    @Inject(QUEUE_CONNECTIONS) private readonly connections: QueueConnections,
    @Inject(SERVER_CONFIG) private readonly config: Config,
    private readonly keys: KeyCheck,
  ) {}

  /** First step of a shutdown, while the port is still open: `ready` is 503, so that a load balancer can react. */
  onModuleDestroy(): void {
    this.isShuttingDown = true;
  }

  async beforeApplicationShutdown(): Promise<void> {
    await pause(this.config.shutdownDelayMs);
  }

  /** 200 as long as the process answers. */
  @Get('live')
  live(): { status: 'ok' } {
    return { status: 'ok' };
  }

  /**
   * 200 if the process can do its work and is not shutting down; else 503 with the reason. A process that answers requests
   * needs a database that can be written to, no missing migration, and the master keys of all client secrets. It does not
   * need the queue, because tokens and orders do not. A worker also needs a queue that accepts jobs.
   */
  @Get('ready')
  async ready(): Promise<{ status: 'ok' }> {
    if (this.isShuttingDown) throw unavailable('the process is shutting down');
    const failing = await Promise.all([
      this.ofDatabase(),
      this.config.role === 'worker' ? this.failing('queue', this.connections.probe()) : [],
    ]);
    const names = failing.flat();
    if (names.length > 0) throw notReady(names);
    return { status: 'ok' };
  }

  /** Whether the keys fit is known only while the database answers. */
  private async ofDatabase(): Promise<string[]> {
    const names = await this.failing('database', this.database());
    return names.length > 0 ? names : this.failing('master key', this.masterKeys());
  }

  private async masterKeys(): Promise<void> {
    const fault = await this.keys.fault();
    if (fault !== null) throw new Error(fault);
  }

  private async database(): Promise<void> {
    const pending = await pendingMigrations(this.dataSource);
    if (pending.length > 0) throw new Error(`${pending.length} migration(s) missing`);
    await checkWritable(this.dataSource, Client);
  }

  /** The name if the check fails, otherwise nothing. */
  private async failing(name: string, check: Promise<unknown>): Promise<string[]> {
    try {
      await withTimeout(check, CHECK_TIMEOUT_MS);
      return [];
    } catch (error) {
      this.logger.warn(`${name}: ${(error as Error).message}`);
      return [name];
    }
  }
}

export const notReady = (parts: string[]): Problem =>
  unavailable(parts.map((part) => `the ${part} is not ready`).join('; '));
