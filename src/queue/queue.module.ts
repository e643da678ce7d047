import { BullModule } from '@nestjs/bullmq';
import { type DynamicModule, Global, Inject, Module, type OnApplicationShutdown } from '@nestjs/common';
import type { Config } from '../config.js';
import { CONFIG } from '../config.module.js';
import { EMBEDDED_POSTGRES } from '../database/database.module.js';
import { serveBothBackends } from './queue-backend.js';
import { openQueueConnections, type QueueConnections } from './queue-connections.js';

/** Shared configurations of @nestjs/bullmq: queues that add jobs take the one, processors the other. */
export const PRODUCER = 'usher-producer';
export const WORKER = 'usher-worker';

/** Injection token of {@link QueueConnections}. */
export const QUEUE_CONNECTIONS = Symbol('QueueConnections');

@Global()
@Module({
  providers: [{ provide: QUEUE_CONNECTIONS, useFactory: openQueueConnections, inject: [CONFIG, EMBEDDED_POSTGRES] }],
  exports: [QUEUE_CONNECTIONS],
})
class QueueConnectionsModule implements OnApplicationShutdown {
  constructor(@Inject(QUEUE_CONNECTIONS) private readonly connections: QueueConnections) {}

  async onApplicationShutdown(): Promise<void> {
    await this.connections.close();
  }
}

/** In braces a Redis Cluster puts all keys of a prefix on one node, where a script may touch them together. */
const keyPrefix = ({ queue, queuePrefix }: Config): string =>
  queue.kind === 'redis' ? `{${queuePrefix}}` : queuePrefix;

@Module({})
export class QueueModule {
  static forRoot(): DynamicModule {
    serveBothBackends();
    const inject = [CONFIG, QUEUE_CONNECTIONS];
    return {
      module: QueueModule,
      imports: [
        QueueConnectionsModule,
        BullModule.forRootAsync(PRODUCER, {
          inject,
          useFactory: (config: Config, { producer }: QueueConnections) => ({
            connection: producer,
            prefix: keyPrefix(config),
            // Together they make a queue fail fast and recover while Redis is away; the first alone breaks it for ever.
            skipWaitingForReady: true,
            skipVersionCheck: true,
          }),
        }),
        BullModule.forRootAsync(WORKER, {
          inject,
          useFactory: (config: Config, { worker }: QueueConnections) => ({
            connection: worker,
            prefix: keyPrefix(config),
          }),
        }),
      ],
    };
  }
}
