import type { ConfigService } from '@nestjs/config';
import type { DataSource } from 'typeorm';
import type { UsherOptions } from 'nest-usher';

/** Usher's options from this application's settings. Without REDIS_URL the jobs are in the database, on Postgres. */
export function usherOptions(config: ConfigService, dataSource: DataSource): UsherOptions {
  const environment = config.get<string>('USHER_ENVIRONMENT') === 'production' ? 'production' : 'sandbox';
  const redis = config.get<string>('REDIS_URL');
  const publicUrl = config.get<string>('PUBLIC_URL');
  return {
    environment,
    masterKeys: config.getOrThrow<string>('USHER_MASTER_KEYS'),
    database: { dataSource },
    queue: { prefix: config.get<string>('USHER_QUEUE_PREFIX', `usher-${environment}`), ...(redis && { url: redis }) },
    deliver: config.get<string>('USHER_DELIVER') !== 'false',
    ...(publicUrl && { publicUrl }),
    notifyUrls: { allowPrivate: environment === 'sandbox' },
  };
}
