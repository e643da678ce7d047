import { Logger } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import { withDataSource } from '../database/data-source-options.js';
import { migrateOrRefuse } from '../database/migrator.js';
import { createLogger, NestLogger } from '../server/logger.js';
import { type Config, loadConfig } from '../server/settings/settings.js';
import { DeliveredReference, Webhook, WebhookAttempt } from '../webhooks/webhook.entity.js';

export { webhookHealth } from '../webhooks/webhook-health.js';
export { listWebhooks, showWebhook } from '../webhooks/webhook-queries.js';

/** Opens only the database, runs `work` and closes it. A command that only reads starts quicker without Nest's modules. */
export async function withDatabase<T>(work: (dataSource: DataSource, config: Config) => Promise<T>): Promise<T> {
  const config = loadConfig();
  Logger.overrideLogger(new NestLogger(await createLogger({ ...config, logLevel: config.commandLogLevel }, 'stderr')));
  return withDataSource(config, 'service', [Webhook, WebhookAttempt, DeliveredReference], async (dataSource) => {
    await migrateOrRefuse(dataSource, config.database);
    return work(dataSource, config);
  });
}
