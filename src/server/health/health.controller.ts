import { setTimeout as pause } from 'node:timers/promises';
import { InjectQueue } from '@nestjs/bullmq';
import {
  Controller,
  Get,
  Logger,
  type BeforeApplicationShutdown,
  Inject,
  Injectable,
  type OnModuleDestroy,
} from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import type { Queue } from 'bullmq';
import type { DataSource } from 'typeorm';
import { pendingMigrations } from '../../database/migrator.js';
import { unavailable } from '../../http/problem.js';
import { WEBHOOK_PRODUCER } from '../../webhooks/queue/delivery.queue.js';
import { type Config, SERVER_CONFIG } from '../settings/settings.js';
import { withTimeout } from './cached-query.js';

/** The first steps of closing, while the port is open yet: whoever spreads requests is told, and given the time to act. */
@Injectable()
export class Drain implements OnModuleDestroy, BeforeApplicationShutdown {
  private isUnderWay = false;

  constructor(@Inject(SERVER_CONFIG) private readonly config: Config) {}

  /** From here on the process is not ready, and answers are the last on their connections. */
  get hasBegun(): boolean {
    return this.isUnderWay;
  }

  onModuleDestroy(): void {
    this.isUnderWay = true;
  }

  async beforeApplicationShutdown(): Promise<void> {
    await pause(this.config.shutdownDelayMs);
  }
}

const PATIENCE_MS = 3_000;

@Controller('health')
export class HealthController {
  private readonly logger = new Logger('health');

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    @InjectQueue(WEBHOOK_PRODUCER) private readonly queue: Queue,
    private readonly drain: Drain,
  ) {}

  /** The process answers. */
  @Get('live')
  live(): { status: 'ok' } {
    return { status: 'ok' };
  }

  /** Database and queue answer, no migration is missing, and it is not closing; else 503 that names what is not ready. */
  @Get('ready')
  async ready(): Promise<{ status: 'ok' }> {
    if (this.drain.hasBegun) throw unavailable('it is shutting down');
    const checks = { database: this.database(), queue: this.queue.getJob('health-check') };
    const faults = await Promise.all(Object.entries(checks).map(([name, check]) => this.faultOf(name, check)));
    const found = faults.filter((fault) => fault !== null);
    if (found.length > 0) throw unavailable(found.join('; '));
    return { status: 'ok' };
  }

  private async database(): Promise<void> {
    const pending = await pendingMigrations(this.dataSource);
    if (pending.length > 0) throw new Error(`${pending.length} migration(s) missing`);
  }

  private async faultOf(name: string, check: Promise<unknown>): Promise<string | null> {
    try {
      await withTimeout(check, PATIENCE_MS);
      return null;
    } catch (error) {
      this.logger.warn(`${name}: ${(error as Error).message}`);
      return `the ${name} is not ready`;
    }
  }
}
