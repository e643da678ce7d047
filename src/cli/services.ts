import { NestFactory } from '@nestjs/core';
import { ClientsService } from '../clients/clients.service.js';
import { KeyRotation } from '../clients/keys/key-rotation.js';
import { SecretRotation } from '../clients/secrets/secret-rotation.js';
import { OrdersService } from '../orders/orders.service.js';
import { Purge } from '../retention/purge.js';
import { createLogger, NestLogger } from '../server/logger.js';
import { loadConfig } from '../server/settings/settings.js';
import { MassResend } from '../webhooks/mass-resend.js';
import { WebhookService } from '../webhooks/webhook.service.js';
import { CommandModule } from './command.module.js';

export type Services = Awaited<ReturnType<typeof openServices>>;

/** Opens the services that commands use. They also work next to a running server. */
export async function openServices() {
  const config = loadConfig();
  const logger = new NestLogger(await createLogger({ ...config, logLevel: config.commandLogLevel }, 'stderr'));
  const app = await NestFactory.createApplicationContext(CommandModule.forConfig(config), {
    logger,
    abortOnError: false,
  });
  const get = <T>(service: new (...injected: never[]) => T): T => app.get<T>(service, { strict: false });
  return {
    clients: get(ClientsService),
    secretRotation: get(SecretRotation),
    keyRotation: get(KeyRotation),
    orders: get(OrdersService),
    webhooks: get(WebhookService),
    massResend: get(MassResend),
    purge: get(Purge),
    close: () => app.close(),
  };
}
