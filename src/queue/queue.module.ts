import { BullModule } from '@nestjs/bullmq';
import { type DynamicModule, Global, Inject, Module, type OnApplicationShutdown, Logger } from '@nestjs/common';
import type { Queue } from 'bullmq';
import { EMBEDDED_POSTGRES } from '../database/database.module.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../usher.options.js';
import { selectBackendByConnection } from './postgres-backend.js';
import { keyPrefix, openQueueConnections, QUEUE_CONNECTIONS, type QueueConnections } from './queue-connections.js';
import { Workers } from './workers.js';

/** Name of the shared @nestjs/bullmq configuration for queues that add jobs. */
export const PRODUCER = 'usher-producer';

@Global()
@Module({
  providers: [
    { provide: QUEUE_CONNECTIONS, useFactory: openQueueConnections, inject: [USHER_OPTIONS, EMBEDDED_POSTGRES] },
    Workers,
  ],
  exports: [QUEUE_CONNECTIONS, Workers],
})
class QueueConnectionsModule implements OnApplicationShutdown {
  constructor(@Inject(QUEUE_CONNECTIONS) private readonly connections: QueueConnections) {}

  async onApplicationShutdown(): Promise<void> {
    await this.connections.close();
  }
}

@Module({})
export class QueueModule {
  static forRoot(): DynamicModule {
    selectBackendByConnection();
    return {
      module: QueueModule,
      imports: [
        QueueConnectionsModule,
        BullModule.forRootAsync(PRODUCER, {
          inject: [USHER_OPTIONS, QUEUE_CONNECTIONS],
          useFactory: (options: ResolvedOptions, { producer }: QueueConnections) => ({
            connection: producer,
            prefix: keyPrefix(options),
            // With both, a queue fails fast while Redis is away and recovers. With the first alone it never recovers.
            skipWaitingForReady: true,
            skipVersionCheck: true,
          }),
        }),
      ],
    };
  }
}

/** Logs the errors of a queue. Without a listener, BullMQ prints a lost connection to the console. */
export function logErrors(queue: Queue): void {
  const logger = new Logger('queue');
  queue.on('error', (error) => logger.warn(`${queue.name}: ${error.message}`));
}
