import { Global, Inject, Injectable, Module, type OnApplicationShutdown } from '@nestjs/common';
import { QUEUE_CONNECTIONS } from '../queue/queue-connections.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../usher.options.js';
import type { Rate } from '../values/duration.js';
import { FailureLimit } from './failure-limit.js';
import { type LimiterStore, openLimiterStore } from './limiter-store.js';
import { Limiter } from './limiter.js';

const LIMITER_STORE = Symbol('LimiterStore');

/** Creates the limiters, which share one store. */
@Injectable()
export class Limits implements OnApplicationShutdown {
  private readonly limiters: Limiter[] = [];

  constructor(
    @Inject(LIMITER_STORE) private readonly store: LimiterStore,
    @Inject(USHER_OPTIONS) private readonly config: ResolvedOptions,
  ) {}

  limiter(name: string, rate: Rate): Limiter {
    const keyPrefix = `${this.config.queuePrefix}:limit:${name}`;
    const shared = this.store.counter({ keyPrefix, points: rate.count, duration: rate.seconds });
    const limiter = new Limiter(rate, shared);
    this.limiters.push(limiter);
    return limiter;
  }

  failureLimit(name: string, rate: Rate): FailureLimit {
    return new FailureLimit(this.limiter(name, rate));
  }

  async onApplicationShutdown(): Promise<void> {
    for (const limiter of this.limiters) limiter.close();
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
