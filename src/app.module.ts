import { type DynamicModule, Module } from '@nestjs/common';
import { AuditModule } from './audit/audit.module.js';
import { AuthRoutesModule } from './auth/auth.module.js';
import { PurgeModule, PurgeWorkerModule } from './purge/purge.module.js';
import { ClientsModule } from './clients/clients.module.js';
import type { Config } from './config.js';
import { ConfigModule } from './config.module.js';
import { DatabaseModule, type DatabaseUse } from './database/database.module.js';
import { MetricsModule } from './metrics/metrics.module.js';
import { DocsModule } from './docs/docs.module.js';
import { OpsModule } from './ops/ops.module.js';
import { OrderRoutesModule } from './orders/order-routes.module.js';
import { OrdersModule } from './orders/orders.module.js';
import { SandboxOperatorWorkerModule } from './orders/sandbox-operator.module.js';
import { QueueModule } from './queue/queue.module.js';
import { WebhookRoutesModule } from './webhooks/webhook-routes.module.js';
import { WebhookModule, WebhookWorkerModule } from './webhooks/webhook.module.js';

/**
 * What every module stands on: configuration, database, queue; and, where the role has them, the workers that
 * deliver. An application of its own imports it beside OrdersModule and WebhookModule.
 */
@Module({})
export class UsherModule {
  static forRoot(config: Config, use: DatabaseUse = 'serve'): DynamicModule {
    const delivers = use === 'serve' && config.role !== 'api';
    return {
      module: UsherModule,
      imports: [
        ConfigModule.forRoot(config),
        DatabaseModule.forRoot(use),
        QueueModule.forRoot(),
        AuditModule,
        MetricsModule,
        ...(delivers ? [WebhookWorkerModule, PurgeWorkerModule] : []),
      ],
    };
  }
}

/** Which modules a role has. */
@Module({})
export class AppModule {
  static forRole(config: Config): DynamicModule {
    const orders = OrderRoutesModule.forEnvironment(config.environment);
    const api = [AuthRoutesModule, orders, WebhookRoutesModule, DocsModule];
    const operator = config.environment === 'sandbox' ? [SandboxOperatorWorkerModule] : [];
    const rooms = [...(config.role === 'worker' ? [] : api), ...(config.role === 'api' ? [] : operator)];
    return {
      module: AppModule,
      imports: [UsherModule.forRoot(config), ClientsModule, ...rooms, WebhookModule, PurgeModule, OpsModule],
    };
  }

  /** For the command line: everything but routes and workers, also beside a running server. */
  static forCommand(config: Config): DynamicModule {
    return {
      module: AppModule,
      imports: [UsherModule.forRoot(config, 'command'), ClientsModule, OrdersModule, WebhookModule, PurgeModule],
    };
  }
}
