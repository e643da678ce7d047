import { Logger } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import { Client } from '../clients/client.entity.js';
import { getClient } from '../clients/clients.service.js';
import { withDataSource } from '../database/data-source-options.js';
import { migrateOrRefuse } from '../database/migrator.js';
import { createLogger, NestLogger } from '../server/logger.js';
import { commandConfig, type Config } from '../server/settings/settings.js';
import { DeliveredReference, DeliveryPause, Webhook, WebhookAttempt } from '../webhooks/webhook.entity.js';
import { webhookHealth } from '../webhooks/webhook-health.js';
import { listWebhooks, showWebhook, type WebhookPart } from '../webhooks/webhook-queries.js';

/** A command that only reads opens only the database, because it starts faster without Nest's modules. */
export const list = (part: WebhookPart, clientId?: string) =>
  withDatabase(async (dataSource) => {
    if (clientId !== undefined) await getClient(dataSource.manager, clientId);
    return listWebhooks(dataSource, part);
  });

export const show = (id: string) => withDatabase((dataSource, { retry }) => showWebhook(dataSource, retry, id));

export const health = (clientId: string) =>
  withDatabase(async (dataSource) => {
    await getClient(dataSource.manager, clientId);
    return webhookHealth(dataSource, clientId);
  });

async function withDatabase<T>(work: (dataSource: DataSource, config: Config) => Promise<T>): Promise<T> {
  const config = commandConfig('without-queue');
  Logger.overrideLogger(new NestLogger(await createLogger({ ...config, logLevel: config.commandLogLevel }, 'stderr')));
  return withDataSource(
    config,
    'service',
    [Client, Webhook, WebhookAttempt, DeliveredReference, DeliveryPause],
    async (dataSource) => {
      await migrateOrRefuse(dataSource, config.database);
      return work(dataSource, config);
    },
  );
}
