import { Global, Inject, Injectable, Module, type OnApplicationShutdown } from '@nestjs/common';
import type { Config } from '../config.js';
import { CONFIG } from '../config.module.js';
import type { Rate } from '../core/rate.js';
import { QUEUE_CONNECTIONS } from '../queue/queue-connections.js';
import { BoundedMemory } from './bounded-memory.js';
import { Limiter } from './limiter.js';
import { type LimiterStore, openLimiterStore } from './limiter-store.js';

const LIMITER_STORE = Symbol('LimiterStore');

/** Makes the limiters, all of one store. */
@Injectable()
export class Limits implements OnApplicationShutdown {
  constructor(
    @Inject(LIMITER_STORE) private readonly store: LimiterStore,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  limiter(name: string, { count, seconds }: Rate): Limiter {
    const keyPrefix = `${this.config.queuePrefix}:limit:${name}`;
    const options = { keyPrefix, points: count, duration: seconds };
    return new Limiter(this.store.counter(options), new BoundedMemory(options), count);
  }

  async onApplicationShutdown(): Promise<void> {
    await this.store.close();
  }
}

@Global()
@Module({
  providers: [{ provide: LIMITER_STORE, useFactory: openLimiterStore, inject: [CONFIG, QUEUE_CONNECTIONS] }, Limits],
  exports: [Limits],
})
export class LimitsModule {}
