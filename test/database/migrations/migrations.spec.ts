import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { DataSource, type DataSourceOptions } from 'typeorm';
import { AuditEvent } from '../../../src/audit/audit-event.entity.js';
import { Authorization, Consent } from '../../../src/auth/authorize/authorization.entity.js';
import { AccessToken, Grant } from '../../../src/auth/tokens/grant.entity.js';
import { ClientApplication } from '../../../src/clients/client-application.entity.js';
import { Client, ClientSecret } from '../../../src/clients/client.entity.js';
import { dataSourceOptions } from '../../../src/database/data-source-options.js';
import { type EmbeddedPostgres, openEmbeddedPostgres } from '../../../src/database/embedded/index.js';
import { pendingMigrations } from '../../../src/database/migrator.js';
import { IdempotencyKey } from '../../../src/orders/idempotency-key.entity.js';
import { Member, MemberSession } from '../../../src/members/member.entity.js';
import { MovieOrder } from '../../../src/orders/movie-order.entity.js';
import { loadConfig } from '../../../src/server/settings/settings.js';
import { ContactState, FailingHost } from '../../../src/webhooks/contact/failing-host.entity.js';
import { DeliveredReference, Webhook, WebhookAttempt } from '../../../src/webhooks/webhook.entity.js';
import { type Backend, createBackend } from '../../support/backend.js';

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

let backend: Backend;
let embedded: EmbeddedPostgres | null;
let dataSource: DataSource;

beforeAll(async () => {
  backend = await createBackend();
  const config = loadConfig(backend.settings);
  embedded = config.database.kind === 'embedded' ? await openEmbeddedPostgres(config.database.folder, 'own') : null;
  const options = { ...(await dataSourceOptions(config, embedded, 'migration')), entities } as DataSourceOptions;
  dataSource = await new DataSource(options).initialize();
});
afterAll(async () => {
  await dataSource.destroy();
  await embedded?.close();
  await backend.drop();
});

const differences = async (): Promise<string[]> =>
  (await dataSource.driver.createSchemaBuilder().log()).upQueries.map(({ query }) => query);

/** Names of the entities' tables that exist. */
async function tables(): Promise<string[]> {
  const runner = dataSource.createQueryRunner();
  const names = dataSource.entityMetadatas.map(({ tableName }) => tableName);
  const found = await Promise.all(names.map((name) => runner.hasTable(name)));
  await runner.release();
  return names.filter((_, index) => found[index]);
}

describe('the migrations', () => {
  test('create exactly the schema of the entities', async () => {
    expect(await differences()).toEqual([]);
  });

  test('can all be undone and run again', async () => {
    expect(await tables()).toHaveLength(entities.length);
    for (const _ of dataSource.migrations) await dataSource.undoLastMigration();
    expect(await tables()).toEqual([]);
    expect(await pendingMigrations(dataSource)).toHaveLength(dataSource.migrations.length);
    await dataSource.runMigrations();
    expect(await pendingMigrations(dataSource)).toEqual([]);
    expect(await differences()).toEqual([]);
  });
});
