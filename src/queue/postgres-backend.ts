import {
  type BackendFactory,
  createRedisBackend,
  isPgPool,
  PostgresConnection,
  PostgresQueueBackend,
  setDefaultBackendFactory,
} from 'bullmq';
import pg, { type Pool, type PoolClient } from 'pg';
import { isDatabaseDown } from '../database/sql.js';

type PostgresOptions = ConstructorParameters<typeof PostgresQueueBackend>[2];

/** BullMQ on Postgres keeps its tables in a schema of its own, named after the prefix that its Redis keys would have. */
export const postgresSchema = (queuePrefix: string): string => queuePrefix.replaceAll('-', '_');

/** BullMQ takes a schema only with a configuration whose driver it loads by require(), which ES modules lack. */
class SchemaConnection extends PostgresConnection {
  override readonly schema: string;

  constructor(pool: Pool, schema: string) {
    super(pool as unknown as ConstructorParameters<typeof PostgresConnection>[0]);
    this.schema = schema;
  }
}

/**
 * @nestjs/bullmq has no option for a backend, so the default one is chosen by the connection: a pg pool is served from
 * Postgres, anything else, whoever made the queue, from Redis as before.
 */
export function selectBackendByConnection(): void {
  setDefaultBackendFactory(((name, options, factoryOptions = {}) => {
    if (!isPgPool(options.connection)) return createRedisBackend(name, options, factoryOptions);
    const schema = postgresSchema((options as { prefix?: string }).prefix ?? 'bullmq');
    const connection = new SchemaConnection(options.connection as unknown as Pool, schema);
    return new PostgresQueueBackend(
      connection,
      name,
      options as object as PostgresOptions,
      true,
      factoryOptions.withBlockingConnection ? name : undefined,
    );
  }) as BackendFactory);
}

/**
 * BullMQ waits before it tries again only after ECONNREFUSED. After any other fault of the connection (a reset, a server
 * that is starting) its worker would spin, and its search for stalled jobs would end for good.
 */
export class WorkerPool extends pg.Pool {
  override query = ((...given: Parameters<pg.Pool['query']>): unknown => {
    const answer = super.query(...given) as unknown;
    return answer instanceof Promise ? answer.catch(throwAsRefused) : answer;
  }) as pg.Pool['query'];
}

function throwAsRefused(error: unknown): never {
  if (!isDatabaseDown(error)) throw error;
  throw Object.assign(new Error((error as Error).message, { cause: error }), { code: 'ECONNREFUSED' });
}

/** Where a queue on Postgres also counts for the rate limits: in the queue's schema, where BullMQ has a `rate_limit` too. */
export const LIMIT_TABLE = 'usher_rate_limit';

/** Not logged: a crash of the database may forget the counts of the last minutes. */
export async function createLimitTable(client: PoolClient, schema: string): Promise<void> {
  await client.query(
    `CREATE UNLOGGED TABLE IF NOT EXISTS "${schema}"."${LIMIT_TABLE}" (
       key varchar(255) PRIMARY KEY, points integer NOT NULL DEFAULT 0, expire bigint)`,
  );
}
