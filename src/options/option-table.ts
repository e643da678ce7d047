import type { DataSource, EntityManager } from 'typeorm';
import type { ResourceOwnerAuthenticator } from '../values/resource-owner.js';
import { BRAND } from './brand-options.js';
import { DELIVERY, LIMITS, RETENTION } from './delivery-options.js';
import {
  duration,
  flag,
  identifier,
  integer,
  masterKeys,
  objectLike,
  oneOf,
  option,
  type OptionValues,
  password,
  shortPassword,
  userName,
} from './option-kinds.js';
import { databaseUrl, httpUrl, needsHttps, queueUrl } from './url-kinds.js';

export const GENERAL = {
  environment: option(
    'environment',
    'USHER_ENV',
    oneOf('sandbox', 'production'),
    'sandbox',
    'tokens and ids of one environment are invalid in the other; an application must name it',
  ),
  publicUrl: option(
    'publicUrl',
    'USHER_AUTH_URL',
    httpUrl,
    null,
    'the public base address, and the issuer, which the [authorisation-code grant](authorisation-code.md) needs; https in production; with a path, the metadata are at `/.well-known/oauth-authorization-server/PATH`',
    {
      production: needsHttps('the address that clients use, it is the issuer'),
    },
  ),
  guidesUrl: option(
    'guidesUrl',
    null,
    httpUrl,
    null,
    'the address of the guides for integrators, which errors link; the server has them at `/docs`',
  ),
  deliver: option(
    'deliver',
    null,
    flag,
    'true',
    'whether this process delivers notifications; the server has `USHER_ROLE`',
  ),
  resourceOwners: option(
    'resourceOwners',
    null,
    objectLike<ResourceOwnerAuthenticator>(
      'an object with the methods currentOwner and signInUrl',
      ({ currentOwner, signInUrl }) => typeof currentOwner === 'function' && typeof signInUrl === 'function',
    ),
    null,
    'who the resource owners of the authorisation-code grant are ([details](embedding.md))',
    { defaultText: 'the built-in members' },
  ),
};

export const DATABASE_AND_QUEUE = {
  dataSource: option(
    'database.dataSource',
    null,
    objectLike<DataSource>('a DataSource of type mysql, mariadb or postgres, injected into useFactory', ({ options }) =>
      ['mysql', 'mariadb', 'postgres'].includes(options?.type ?? ''),
    ),
    null,
    'the application’s own `DataSource`, in place of `database.url`',
  ),
  currentManager: option(
    'currentManager',
    null,
    {
      wanted: 'a function that returns an EntityManager',
      check: (value) => (typeof value === 'function' ? (value as () => EntityManager | undefined) : undefined),
    },
    null,
    'finds the caller’s transaction in the application’s own `DataSource` ([details](existing-application.md#transactions))',
    { defaultText: 'that of typeorm-transactional' },
  ),
  databaseUrl: option(
    'database.url',
    'DATABASE_URL',
    databaseUrl,
    'embedded:./data',
    'where the tables are ([TLS](#tls-and-redis)); an application must name it',
    {
      isSecret: true,
      production: (address) =>
        address?.kind === 'embedded'
          ? ': production needs mysql:// or postgres://; the embedded database is for the sandbox'
          : null,
    },
  ),
  databasePool: option('database.pool', 'DATABASE_POOL', integer(1, 1_000), '10', 'connections for each process'),
  migrationTable: option(
    'database.migrationTable',
    'DATABASE_MIGRATION_TABLE',
    identifier,
    'usher_migration',
    'the table that records Usher’s migrations; `migrations` for commands on the database of an application that uses TypeORM’s default',
  ),
  databaseTimeoutMs: option(
    'database.timeoutMs',
    'DATABASE_TIMEOUT',
    duration('100ms', '10m'),
    '10s',
    'how long a statement may take, and how long a request of the server waits for the database before it is answered 503 ([details](operations/when-things-break.md#requests-are-slow))',
  ),
  joinDatabase: option(
    'database.join',
    null,
    flag,
    'false',
    'whether to use the process that already runs the embedded database, if there is one',
  ),
  queueUrl: option(
    'queue.url',
    'QUEUE_URL',
    queueUrl,
    null,
    'where the jobs are ([below](#tls-and-redis)); required beside MySQL',
    {
      isSecret: true,
      defaultText: 'the embedded or Postgres database',
    },
  ),
  queuePrefix: option(
    'queue.prefix',
    'QUEUE_PREFIX',
    identifier,
    null,
    'prefix of the queues’ keys in Redis, `{usher-sandbox}`, or their schema in Postgres',
    { defaultText: '`usher-` and the environment' },
  ),
};

export const SECRETS = {
  masterKeys: option(
    'masterKeys',
    'USHER_MASTER_KEYS',
    masterKeys,
    null,
    'the keys of clients’ secrets; the first encrypts, all decrypt',
    {
      isSecret: true,
      defaultText: 'generated (embedded)',
      local: { default: null, name: 'a generated master key' },
    },
  ),
  internalUser: option(
    'internal.user',
    'INTERNAL_USER',
    userName,
    null,
    'the credentials of an order service in another process',
    {
      neededBy: 'internalPassword',
      local: { default: 'internal' },
    },
  ),
  internalPassword: option(
    'internal.password',
    'INTERNAL_PASSWORD',
    password,
    null,
    'their password; in production at least 12 characters',
    {
      isSecret: true,
      neededBy: 'internalUser',
      local: { default: 'internal', name: 'internal credentials internal:internal' },
      production: shortPassword,
    },
  ),
};

/** The options of the library. The server has others beside them. */
export const OPTIONS = {
  ...GENERAL,
  ...BRAND,
  ...DATABASE_AND_QUEUE,
  ...SECRETS,
  ...DELIVERY,
  ...RETENTION,
  ...LIMITS,
};

export type LibraryValues = OptionValues<typeof OPTIONS>;
