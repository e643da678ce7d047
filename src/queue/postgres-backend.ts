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

  override waitUntilReady(): Promise<void> {
    return super.waitUntilReady().catch((error: unknown) => forget(this, error));
  }
}

class PostgresBackend extends PostgresQueueBackend {
  override waitUntilReady(): Promise<void> {
    return super.waitUntilReady().catch((error: unknown) => forget(this, error));
  }
}

/** BullMQ keeps how the first connection went for good, also its failure. Without it the next use connects again. */
function forget(one: object, error: unknown): never {
  Object.assign(one, { readyPromise: undefined });
  throw error;
}

/**
 * Makes BullMQ use Postgres for every queue whose connection is a pg pool, and Redis for all others, as before.
 * @nestjs/bullmq has no option for a backend, so this sets BullMQ's default for the whole process.
 */
export function selectBackendByConnection(): void {
  setDefaultBackendFactory(((name, options, factoryOptions = {}) => {
    if (!isPgPool(options.connection)) return createRedisBackend(name, options, factoryOptions);
    const schema = postgresSchema((options as { prefix?: string }).prefix ?? 'bullmq');
    const connection = new SchemaConnection(options.connection as unknown as Pool, schema);
    return new PostgresBackend(
      connection,
      name,
      options as object as PostgresOptions,
      true,
      factoryOptions.withBlockingConnection ? name : undefined,
    );
  }) as BackendFactory);
}
