import { BullModule, getQueueToken } from '@nestjs/bullmq';
import { type FactoryProvider, Global, Inject, type OnApplicationShutdown } from '@nestjs/common';
import { Queue } from 'bullmq';
import { EMBEDDED_POSTGRES } from '../database/database.module.js';
import { USHER_DATA_SOURCE } from '../database/data-source.js';
import { telemetryOption } from '../telemetry/tracing.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../usher.options.js';
import { keyPrefix, openQueueConnections, QUEUE_CONNECTIONS, type QueueConnections } from './queue-connections.js';
import { queueWarnings } from './repeated-warnings.js';
import { Workers } from './workers.js';
import { StartUpError } from '../values/start-up-error.js';
import { UsherNamedModule } from '../telemetry/usher-named.js';

/** Name of the shared @nestjs/bullmq configuration for queues that add jobs. */
export const PRODUCER = 'usher-producer';

@Global()
@UsherNamedModule({
  providers: [
    {
      provide: QUEUE_CONNECTIONS,
      useFactory: openQueueConnections,
      // The data source comes first: if the database is missing or not migrated, no connection is left open.
      inject: [USHER_OPTIONS, EMBEDDED_POSTGRES, USHER_DATA_SOURCE],
    },
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

@UsherNamedModule({
  imports: [
    QueueConnectionsModule,
    BullModule.forRootAsync(PRODUCER, {
      inject: [USHER_OPTIONS, QUEUE_CONNECTIONS],
      useFactory: (options: ResolvedOptions, { producer }: QueueConnections) => ({
        connection: producer,
        prefix: keyPrefix(options),
        // With both options a queue fails fast while Redis is away, and recovers. With only the first it never recovers.
        skipWaitingForReady: true,
        skipVersionCheck: true,
        ...telemetryOption(),
      }),
    }),
  ],
})
export class QueueModule {}

/**
 * A provider that checks a queue, and logs its errors from its first moment. Without a listener, BullMQ prints a lost connection
 * to the console.
 */
export const watchedQueue = (name: string): FactoryProvider => ({
  provide: `usher: errors of ${name}`,
  inject: [getQueueToken(name), USHER_OPTIONS],
  useFactory: (queue: Queue, { queue: { kind } }: ResolvedOptions) => {
    queue.on('error', (error) => queueWarnings.warn(error.message));
    // Another copy of BullMQ does not know that the queue is in a database, and would wait for a Redis.
    if (['database', 'postgres'].includes(kind) && !(queue instanceof Queue))
      throw new StartUpError(
        '@nestjs/bullmq and Usher load two copies of bullmq; install one, and bundle neither or both of the two packages',
      );
  },
});

/**
 * Removes the job if no worker will take it, because Redis has lost its list, or has lost its content and it has ended. The
 * queue would add no new job with its id. Only for jobs that are removed when they end.
 */
export async function removeLostJob(queue: Queue, id: string): Promise<void> {
  const state = await (await queue.getJob(id))?.getState();
  if (state && ['unknown', 'completed', 'failed'].includes(state)) await queue.remove(id);
}
