import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import type { DataSource, EntityManager } from 'typeorm';
import { USHER_DATA_SOURCE } from '../../database/data-source.js';
import { StartUpError } from '../../values/start-up-error.js';
import { ClientSecret } from '../client.entity.js';
import { Vault } from '../secrets/vault.js';
import { KeyRing } from './key-ring.js';

/** Counts the client secrets that each master key encrypts, by key id. */
export async function keyUsage(manager: EntityManager): Promise<Map<string, number>> {
  const rows = await manager
    .createQueryBuilder(ClientSecret, 'secret')
    .select('secret.keyId', 'id')
    .addSelect('COUNT(*)', 'count')
    .groupBy('secret.keyId')
    .getRawMany<{ id: string; count: string | number }>();
  return new Map(rows.map(({ id, count }) => [id, Number(count)]));
}

/** Stops the start-up if a master key is missing or changed: clients could neither authenticate nor be notified. */
@Injectable()
export class KeyCheck implements OnModuleInit {
  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    private readonly keys: KeyRing,
    private readonly vault: Vault,
  ) {}

  async onModuleInit(): Promise<void> {
    const { manager } = this.dataSource;
    for (const [keyId, count] of await keyUsage(manager)) {
      const sample = await manager.findOneBy(ClientSecret, { keyId });
      if (sample && !this.canOpen(sample)) throw new StartUpError(this.fault(keyId, count));
    }
  }

  private canOpen(secret: ClientSecret): boolean {
    try {
      return this.vault.open(secret, secret.clientId).length > 0;
    } catch {
      return false;
    }
  }

  private fault(keyId: string, count: number): string {
    const { place } = this.keys;
    const why = this.keys.find(keyId) ? `which differs in ${place}` : `which is missing from ${place}`;
    return `${count} client secret(s) are encrypted with master key "${keyId}", ${why}; put that key back after the first key`;
  }
}
