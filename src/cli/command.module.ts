import { type DynamicModule, Module } from '@nestjs/common';
import { OrdersModule } from '../orders/orders.module.js';
import type { Config } from '../server/settings/settings.js';
import { UsherModule } from '../usher.module.js';
import { WebhookModule } from '../webhooks/webhook.module.js';

/** For the command line: everything except routes and workers. It needs no Fastify and can run next to a server. */
@Module({})
export class CommandModule {
  static forConfig(config: Config): DynamicModule {
    const { database } = config;
    const joined = database.kind === 'embedded' ? { ...database, join: true } : database;
    return {
      module: CommandModule,
      imports: [
        UsherModule.forResolvedOptions({ ...config, database: joined, deliver: false }),
        OrdersModule,
        WebhookModule,
      ],
    };
  }
}
