import { type DynamicModule, Module } from '@nestjs/common';
import { AuditModule } from './audit/audit.module.js';
import { DatabaseModule, type DatabaseUse } from './database/database.module.js';
import { MetricsModule } from './metrics/metrics.module.js';
import { QueueModule } from './queue/queue.module.js';
import { PurgeWorkerModule } from './retention/purge.module.js';
import { type ResolvedOptions, UsherOptionsModule } from './usher.options.js';
import { WebhookWorkerModule } from './webhooks/webhook.module.js';

/**
 * What every other module of Usher needs: options, database, queue and the delivery workers. An application imports it
 * together with OrdersModule and WebhookModule.
 */
@Module({})
export class UsherModule {
  static forRoot(options: ResolvedOptions, use: DatabaseUse = 'serve'): DynamicModule {
    return {
      module: UsherModule,
      imports: [
        UsherOptionsModule.forRoot(options),
        DatabaseModule.forRoot(use),
        QueueModule.forRoot(),
        AuditModule,
        MetricsModule,
        ...(options.deliver && use === 'serve' ? [WebhookWorkerModule, PurgeWorkerModule] : []),
      ],
    };
  }
}
