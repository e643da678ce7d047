import { Logger } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import { openDataSource } from '../database/data-source-options.js';
import { openEmbeddedPostgres } from '../database/embedded/index.js';
import { migrateOrRefuse } from '../database/migrator.js';
import { createLogger, NestLogger } from '../server/logger.js';
import { type Config, loadConfig } from '../server/settings/settings.js';
import { DeliveredReference, Webhook, WebhookAttempt } from '../webhooks/webhook.entity.js';

export { webhookHealth } from '../webhooks/webhook-health.js';
export { listWebhooks, showWebhook } from '../webhooks/webhook-queries.js';

/** Opens only the database, runs `work` and closes it. A command that only reads starts quicker without Nest's modules. */
export async function withDatabase<T>(work: (dataSource: DataSource, config: Config) => Promise<T>): Promise<T> {
  const config = loadConfig();
  const { database } = config;
  Logger.overrideLogger(new NestLogger(await createLogger({ ...config, logLevel: config.commandLogLevel }, 'stderr')));
  const embedded = database.kind === 'embedded' ? await openEmbeddedPostgres(database.folder, 'join') : null;
  try {
    const dataSource = await openDataSource(config, embedded, 'service', [Webhook, WebhookAttempt, DeliveredReference]);
    try {
      await migrateOrRefuse(dataSource, database);
      return await work(dataSource, config);
    } finally {
      await dataSource.destroy();
    }
  } finally {
    await embedded?.close();
  }
}
