import { NestFactory } from '@nestjs/core';
import { ClientAccount } from '../account/client-account.js';
import { AuditLog } from '../audit/audit.module.js';
import { ClientApplications } from '../clients/client-applications.js';
import { ClientsService } from '../clients/clients.service.js';
import { KeyRotation } from '../clients/keys/key-rotation.js';
import { SecretRotation } from '../clients/secrets/secret-rotation.js';
import { MembersService } from '../members/members.service.js';
import { OperatorsService } from '../operators/operators.service.js';
import { OrderList } from '../orders/list/order-list.js';
import { OrderTotals } from '../orders/list/order-totals.js';
import { OrdersService } from '../orders/orders.service.js';
import { ClientErasure } from '../retention/client-erasure.js';
import { MemberErasure } from '../retention/member-erasure.js';
import { Purge } from '../retention/purge.js';
import { createLogger, NestLogger } from '../server/logger.js';
import { loadConfig } from '../server/settings/settings.js';
import { UndeliveredWebhooks } from '../webhooks/undelivered/undelivered-webhooks.js';
import { WebhookResends } from '../webhooks/undelivered/webhook-resends.js';
import { WebhookService } from '../webhooks/webhook.service.js';
import { CommandModule, type Needs } from './command.module.js';

export type Services = Awaited<ReturnType<typeof openServices>>;

/** Opens the services that commands use. They also work next to a running server. */
export async function openServices(needs: Needs) {
  const config = loadConfig();
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
    keyRotation: get(KeyRotation),
    orders: get(OrdersService),
    orderList: get(OrderList),
    orderTotals: get(OrderTotals),
    webhooks: get(WebhookService),
    resends: get(WebhookResends),
    undelivered: get(UndeliveredWebhooks),
    purge: get(Purge),
    audit: get(AuditLog),
    clientErasure: get(ClientErasure),
    memberErasure: get(MemberErasure),
    close: () => app.close(),
  };
}
