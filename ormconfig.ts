import { DataSource } from 'typeorm';
import { AuditEvent } from './src/audit/audit-event.entity.js';
import { Authorization, Consent } from './src/auth/authorize/authorization.entity.js';
import { AccessToken, Grant } from './src/auth/tokens/grant.entity.js';
import { ClientApplication } from './src/clients/client-application.entity.js';
import { Client, ClientSecret } from './src/clients/client.entity.js';
import { loadConfig } from './src/server/settings/settings.js';
import { dataSourceOptions } from './src/database/data-source-options.js';
import { openEmbeddedPostgres } from './src/database/embedded/index.js';
import { IdempotencyKey } from './src/orders/idempotency-key.entity.js';
import { Member, MemberSession } from './src/members/member.entity.js';
import { MovieOrder } from './src/orders/movie-order.entity.js';
import { ContactState, FailingHost } from './src/webhooks/contact/failing-host.entity.js';
import { DeliveredReference, Webhook, WebhookAttempt } from './src/webhooks/webhook.entity.js';

const entities = [
  Client,
  ClientSecret,
  ClientApplication,
  Grant,
  AccessToken,
  Authorization,
  Consent,
  Member,
  MemberSession,
  MovieOrder,
  IdempotencyKey,
  Webhook,
  WebhookAttempt,
  DeliveredReference,
  FailingHost,
  ContactState,
  AuditEvent,
];

/** For TypeORM's own command line (`npm run typeorm -- migration:show`), from the same configuration as the service. */
async function createDataSource(): Promise<DataSource> {
  const config = loadConfig();
  const { database } = config;
  const embedded = database.kind === 'embedded' ? await openEmbeddedPostgres(database.folder, 'join') : null;
  const dataSource = new DataSource({ ...(await dataSourceOptions(config, embedded, 'migration')), entities });
  const destroy = dataSource.destroy.bind(dataSource);
  dataSource.destroy = async () => {
    await destroy();
    await embedded?.close();
  };
  return dataSource;
}

export default createDataSource();
