import { Global, Inject, Injectable, Module, type OnApplicationShutdown } from '@nestjs/common';
import { QUEUE_CONNECTIONS } from '../queue/queue-connections.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../usher.options.js';
import type { Rate } from '../values/duration.js';
import { BoundedMemory, type LimiterStore, openLimiterStore } from './limiter-store.js';
import { Limiter } from './limiter.js';

const LIMITER_STORE = Symbol('LimiterStore');

/** Creates the limiters, which share one store. */
@Injectable()
export class Limits implements OnApplicationShutdown {
  constructor(
    @Inject(LIMITER_STORE) private readonly store: LimiterStore,
    @Inject(USHER_OPTIONS) private readonly config: ResolvedOptions,
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
  providers: [
    { provide: LIMITER_STORE, useFactory: openLimiterStore, inject: [USHER_OPTIONS, QUEUE_CONNECTIONS] },
    Limits,
  ],
  exports: [Limits],
})
export class LimitsModule {}
