import {
  type BackendFactory,
  createRedisBackend,
  isPgPool,
  PostgresConnection,
  PostgresQueueBackend,
  setDefaultBackendFactory,
} from 'bullmq';
import type { Pool } from 'pg';

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
export function serveBothBackends(): void {
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
