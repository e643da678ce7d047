import { setTimeout as pause } from 'node:timers/promises';
import { type BeforeApplicationShutdown, Inject, Injectable, type OnModuleDestroy } from '@nestjs/common';
import { type Config, SERVER_CONFIG } from '../settings/settings.js';

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
