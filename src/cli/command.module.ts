import { hostname, userInfo } from 'node:os';
import { type DynamicModule, Module } from '@nestjs/common';
import { AccountModule } from '../account/account.module.js';
import { OperatorsModule } from '../operators/operators.module.js';
import { OrdersModule } from '../orders/orders.module.js';
import { ErasureModule } from '../retention/client-erasure.js';
import type { Config } from '../server/settings/settings.js';
import { usherModuleFor } from '../usher.module.js';
import { type Actor, actor } from '../values/actor.js';
import { WebhookModule } from '../webhooks/webhook.module.js';

/** Whether a command adds jobs. One that does not never connects to the queue, whose server may be down or unknown to it. */
export type Needs = 'with-queue' | 'without-queue';

/** For the command line: everything except routes and workers. It needs no Fastify and can run next to a server. */
@Module({})
export class CommandModule {
  static forConfig(config: Config, needs: Needs): DynamicModule {
    const { database } = config;
    const joined = database.kind === 'embedded' ? { ...database, join: true } : database;
    const queue = needs === 'with-queue' ? config.queue : ({ kind: 'none' } as const);
    return {
      module: CommandModule,
      imports: [
        usherModuleFor({ ...config, actor: commandLine(), database: joined, queue, deliver: false }),
        OrdersModule,
        WebhookModule,
        AccountModule,
        ErasureModule,
        OperatorsModule.with(config.operator),
      ],
    };
  }
}

/** The user of the operating system who runs the command, and the machine. */
function commandLine(): Actor {
  return actor('command-line', userName(), hostname());
}

/** In a container the user may have no name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}
