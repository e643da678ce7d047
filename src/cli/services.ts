import { hostname, userInfo } from 'node:os';
import { type DynamicModule, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ClientAccount } from '../account/client-account.js';
import { AuditLog } from '../audit/audit.module.js';
import { ClientApplications } from '../clients/client-applications.js';
import { ClientsService } from '../clients/clients.service.js';
import { KeyCheck } from '../clients/keys/key-check.js';
import { KeyRotation } from '../clients/keys/key-rotation.js';
import { SecretRotation } from '../clients/secrets/secret-rotation.js';
import { MembersService } from '../members/members.service.js';
import { OperatorsService } from '../operators/operators.service.js';
import { OrderList } from '../orders/list/order-list.js';
import { OrderTotals } from '../orders/list/order-totals.js';
import { OrdersService } from '../orders/orders.service.js';
import { PortalLinks, PortalModule } from '../portal/portal.js';
import { Purge } from '../retention/purge.js';
import { createLogger, NestLogger } from '../server/logger.js';
import { type Config, commandConfig, type Needs } from '../server/settings/settings.js';
import { DeliveryPauses } from '../webhooks/delivery-pauses.js';
import { UndeliveredWebhooks } from '../webhooks/undelivered/undelivered-webhooks.js';
import { WebhookResends } from '../webhooks/undelivered/webhook-resends.js';
import { WebhookService } from '../webhooks/webhook.service.js';
import { AccountModule } from '../account/account.controller.js';
import { OperatorsModule } from '../operators/operator-sessions.js';
import { OrdersModule } from '../orders/orders.module.js';
import { Erasure, ErasureModule } from '../retention/erasure.js';
import { usherModuleFor } from '../usher.module.js';
import { actor } from '../values/actor.js';
import { WebhookModule } from '../webhooks/webhook.module.js';

export type Services = Awaited<ReturnType<typeof openServices>>;

/** Opens the services that commands use. They also work next to a running server. */
export async function openServices(needs: Needs) {
  const config = commandConfig(needs);
  const logger = new NestLogger(await createLogger({ ...config, logLevel: config.commandLogLevel }, 'stderr'));
  const app = await NestFactory.createApplicationContext(CommandModule.forConfig(config, needs), {
    logger,
    abortOnError: false,
  });
  const get = <T>(service: new (...injected: never[]) => T): T => app.get<T>(service, { strict: false });
  return {
    account: get(ClientAccount),
    clients: get(ClientsService),
    applications: get(ClientApplications),
    members: get(MembersService),
    operators: get(OperatorsService),
    secretRotation: get(SecretRotation),
    keyCheck: get(KeyCheck),
    keyRotation: get(KeyRotation),
    orders: get(OrdersService),
    orderList: get(OrderList),
    orderTotals: get(OrderTotals),
    webhooks: get(WebhookService),
    resends: get(WebhookResends),
    pauses: get(DeliveryPauses),
    undelivered: get(UndeliveredWebhooks),
    portalLinks: get(PortalLinks),
    purge: get(Purge),
    audit: get(AuditLog),
    erasure: get(Erasure),
    close: () => app.close(),
  };
}

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
        usherModuleFor({
          ...config,
          // The user of the operating system who runs the command, and the machine.
          actor: actor('command-line', userName(), hostname()),
          role: null,
          database: joined,
          queue,
          deliver: false,
        }),
        OrdersModule,
        WebhookModule,
        AccountModule,
        ErasureModule,
        PortalModule,
        OperatorsModule.with(config.operator),
      ],
    };
  }
}

/** In a container the user may have no name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}
