import { setTimeout as pause } from 'node:timers/promises';
import { Controller, Get, Logger, type BeforeApplicationShutdown, Inject, type OnModuleDestroy } from '@nestjs/common';
import { KeyCheck } from '../../clients/keys/key-check.js';
import { type Problem, unavailable } from '../../http/problem.js';
import { RepeatedWarnings } from '../../queue/repeated-warnings.js';
import { UsherHealth } from '../../webhooks/usher-health.js';
import { withTimeout } from '../../values/duration.js';
import { type Config, SERVER_CONFIG } from '../settings/settings.js';

const CHECK_TIMEOUT_MS = 3_000;

@Controller('health')
export class HealthController implements OnModuleDestroy, BeforeApplicationShutdown {
  /** Whether a shutdown has begun. From then on the process is not ready, and each response closes its connection. */
  isShuttingDown = false;
  /** Whether the server listens. A start that fails is reported without a delay. */
  isListening = false;
  private readonly warnings = new RepeatedWarnings(new Logger('Usher health'));
  /** The check that runs now. */
  private checking: Promise<string[]> | null = null;

  constructor(
    private readonly health: UsherHealth,
    @Inject(SERVER_CONFIG) private readonly config: Config,
    private readonly keys: KeyCheck,
  ) {}

  /** First step of a shutdown, while the port is still open: `ready` is 503, so that a load balancer can react. */
  onModuleDestroy(): void {
    this.isShuttingDown = true;
  }

  async beforeApplicationShutdown(): Promise<void> {
    if (this.isListening) await pause(this.config.shutdownDelayMs);
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
    // Requests of the same moment share a check: no limit counts them, and each check needs several statements.
    this.checking ??= this.check().finally(() => (this.checking = null));
    const failing = await this.checking;
    if (failing.length > 0) throw notReady(failing);
    return { status: 'ok' };
  }

  /** The parts that are not ready. Never rejects. */
  private async check(): Promise<string[]> {
    const [database, queue] = await Promise.all([
      this.health.isDatabaseReady(),
      this.config.role === 'worker' ? this.health.isQueueReady() : true,
    ]);
    const lacksKeys = database && (await this.lacksKeys());
    return [...(database ? [] : ['database']), ...(queue ? [] : ['queue']), ...(lacksKeys ? ['master key'] : [])];
  }

  /** The keys can be checked only while the database answers. */
  private async lacksKeys(): Promise<boolean> {
    const fault = await withTimeout(this.keys.fault(), CHECK_TIMEOUT_MS).catch((error: Error) => error.message);
    if (fault !== null) this.warnings.warn(`master key: ${fault}`);
    return fault !== null;
  }
}

export const notReady = (parts: string[]): Problem =>
  unavailable(parts.map((part) => `the ${part} is not ready`).join('; '));
