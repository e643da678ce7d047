import { Inject, Injectable } from '@nestjs/common';
import { type DataSource, type EntityManager, IsNull, LessThanOrEqual, MoreThan, Not } from 'typeorm';
import { AuditLog } from '../../audit/audit.module.js';
import { USHER_DATA_SOURCE } from '../../database/data-source.js';
import { databaseNow, inTransaction } from '../../database/sql.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { newId } from '../../values/identifier.js';
import { newSecret } from '../client-credentials.js';
import { ClientError, UnknownClientError } from '../client-error.js';
import { Client, ClientSecret } from '../client.entity.js';
import { Vault } from './vault.js';

export interface RotatedSecret {
  /** The new secret. It cannot be shown again. */
  secret: string;
  /** When the old secret expires, by the database's clock, in milliseconds since 1970. */
  oldValidUntil: number;
}

/** Replaces client secrets. Each change locks the client's row, so at most two secrets are valid. */
@Injectable()
export class SecretRotation {
  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    private readonly vault: Vault,
    private readonly audit: AuditLog,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {}

  /** Both secrets are valid during the overlap. With `overlapMs` 0 the old secret expires immediately. */
  async rotate(clientId: string, overlapMs: number): Promise<RotatedSecret> {
    const secret = newSecret();
    const oldValidUntil = await inTransaction(this.dataSource, async (manager) => {
      const now = await lockClient(manager, clientId);
      await rejectSecondRotation(manager, clientId, now);
      await manager.update(ClientSecret, { clientId, expiresAt: IsNull() }, { expiresAt: now + overlapMs });
      await manager.delete(ClientSecret, { clientId, expiresAt: LessThanOrEqual(now) });
      const id = newId(this.options.environment, now);
      const sealed = this.vault.seal(secret, clientId);
      await manager.insert(ClientSecret, { id, clientId, ...sealed, createdAt: now, expiresAt: null });
      return now + overlapMs;
    });
    this.audit.record('secret.rotated', { client: clientId, oldValidUntil: new Date(oldValidUntil).toISOString() });
    return { secret, oldValidUntil };
  }

  /** Ends the overlap now. Only the new secret stays valid. */
  async finish(clientId: string): Promise<void> {
    await inTransaction(this.dataSource, async (manager) => {
      const now = await lockClient(manager, clientId);
      const until = await overlapEnd(manager, clientId, now);
      if (until === null) throw new ClientError(`client ${clientId} has no rotation in progress`);
      await manager.delete(ClientSecret, { clientId, expiresAt: Not(IsNull()) });
    });
    this.audit.record('secret.rotation-finished', { client: clientId });
  }
}

/** Locks the client's row until the transaction ends. Returns the current database time. */
async function lockClient(manager: EntityManager, id: string): Promise<number> {
  const client = await manager.findOne(Client, { where: { id }, lock: { mode: 'pessimistic_write' } });
  if (client?.id !== id) throw new UnknownClientError(id);
  return databaseNow(manager);
}

async function rejectSecondRotation(manager: EntityManager, clientId: string, now: number): Promise<void> {
  const until = await overlapEnd(manager, clientId, now);
  if (until === null) return;
  throw new ClientError(
    `client ${clientId} already has a rotation in progress until ${new Date(until).toISOString()}; ` +
      `"usher client finish-rotation ${clientId}" ends it now`,
  );
}

async function overlapEnd(manager: EntityManager, clientId: string, now: number): Promise<number | null> {
  const old = await manager.findOneBy(ClientSecret, { clientId, expiresAt: MoreThan(now) });
  return old?.expiresAt ?? null;
}
