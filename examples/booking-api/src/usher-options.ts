import type { ConfigService } from '@nestjs/config';
import type { UsherOptions } from 'nest-usher';
import type { DataSource } from 'typeorm';

export function usherOptions(config: ConfigService, dataSource: DataSource): UsherOptions {
  return {
    environment: 'sandbox',
    masterKeys: config.getOrThrow('USHER_MASTER_KEYS'),
    database: { dataSource },
    queue: { url: config.getOrThrow('REDIS_URL'), prefix: config.get('USHER_QUEUE_PREFIX', 'booking-api') },
    deliver: config.get('USHER_DELIVER') !== 'false',
    // Receivers on this machine; in production only public addresses are allowed.
    notifyUrls: { allowPrivate: true },
  };
}
