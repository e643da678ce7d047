import { BullModule } from '@nestjs/bullmq';
import { type DynamicModule, Global, Inject, Module, type OnApplicationShutdown } from '@nestjs/common';
import type { Config } from '../config.js';
import { CONFIG } from '../config.module.js';
import { EMBEDDED_POSTGRES } from '../database/database.module.js';
import { serveBothBackends } from './queue-backend.js';
import { keyPrefix, openQueueConnections, QUEUE_CONNECTIONS, type QueueConnections } from './queue-connections.js';
import { Workers } from './workers.js';

/** Shared configuration of @nestjs/bullmq for queues that add jobs. */
export const PRODUCER = 'usher-producer';

@Global()
@Module({
  providers: [
    { provide: QUEUE_CONNECTIONS, useFactory: openQueueConnections, inject: [CONFIG, EMBEDDED_POSTGRES] },
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
    serveBothBackends();
    return {
      module: QueueModule,
      imports: [
        QueueConnectionsModule,
        BullModule.forRootAsync(PRODUCER, {
          inject: [CONFIG, QUEUE_CONNECTIONS],
          useFactory: (config: Config, { producer }: QueueConnections) => ({
            connection: producer,
            prefix: keyPrefix(config),
            // Together they make a queue fail fast and recover while Redis is away; the first alone breaks it for ever.
            skipWaitingForReady: true,
            skipVersionCheck: true,
          }),
        }),
      ],
    };
  }
}
