import {
  type BackendFactory,
  createRedisBackend,
  isPgPool,
  PostgresConnection,
  PostgresQueueBackend,
  setDefaultBackendFactory,
} from 'bullmq';
import type { Pool } from 'pg';
import { postgresSchema } from './postgres-pool.js';

type PostgresOptions = ConstructorParameters<typeof PostgresQueueBackend>[2];

/** Sets the schema on an existing pool. BullMQ's own option for it loads the driver by require(), which ES modules lack. */
class SchemaConnection extends PostgresConnection {
  override readonly schema: string;

  constructor(pool: Pool, schema: string) {
    super(pool as unknown as ConstructorParameters<typeof PostgresConnection>[0]);
    this.schema = schema;
  }
}

/**
 * BullMQ keeps the result of its first connection for ever, even a failure. Without that result the next use connects again.
 */
function forgettingFailure<T extends { waitUntilReady(): Promise<void> }>(one: T): T {
  const waitUntilReady = one.waitUntilReady.bind(one);
  one.waitUntilReady = () =>
    waitUntilReady().catch((error: unknown) => {
      Object.assign(one, { readyPromise: undefined });
      throw error;
    });
  return one;
}

/**
 * Makes BullMQ use Postgres for every queue whose connection is a pg pool, and Redis for all others, as before.
 * @nestjs/bullmq has no option for a backend, so this sets BullMQ's default for the whole process.
 */
export function selectBackendByConnection(): void {
  setDefaultBackendFactory(((name, options, factoryOptions = {}) => {
    if (!isPgPool(options.connection)) return createRedisBackend(name, options, factoryOptions);
    const schema = postgresSchema((options as { prefix?: string }).prefix ?? 'bullmq');
    const connection = forgettingFailure(new SchemaConnection(options.connection as unknown as Pool, schema));
    const blocking = factoryOptions.withBlockingConnection ? name : undefined;
    return forgettingFailure(
      new PostgresQueueBackend(connection, name, options as object as PostgresOptions, true, blocking),
    );
  }) as BackendFactory);
}
