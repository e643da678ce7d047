import { USHER_DATA_SOURCE } from '../../database/data-source.js';
import { Inject, Injectable } from '@nestjs/common';
import { type DataSource, type EntityManager, IsNull, LessThanOrEqual, MoreThan, Not } from 'typeorm';
import { AuditLog } from '../../audit/audit.module.js';
import { databaseNow, inTransaction } from '../../database/sql.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { newId } from '../../values/identifier.js';
import { newSecret } from '../client-credentials.js';
import { ClientError, UnknownClientError } from '../client-error.js';
import { Client, ClientSecret } from '../client.entity.js';
import { Vault } from './vault.js';

export interface RotatedSecret {
  /** The new one, shown this once. */
  secret: string;
  /** Until when the old one is valid, by the database's clock, in milliseconds since 1970. */
  oldValidUntil: number;
}

/** Replaces client secrets. Whoever changes a client's secrets holds its row, so there are never more than two valid. */
@Injectable()
export class SecretRotation {
  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    private readonly vault: Vault,
    private readonly audit: AuditLog,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {}

  /** Old and new secret are both valid until the overlap is over; `overlapMs` 0 ends the old one at once. */
  async rotate(clientId: string, overlapMs: number): Promise<RotatedSecret> {
    const secret = newSecret();
    const oldValidUntil = await inTransaction(this.dataSource, async (manager) => {
      const now = await holdClient(manager, clientId);
      await refuseSecondRotation(manager, clientId, now);
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

  /** Ends the overlap now: only the new secret stays valid. */
  async finish(clientId: string): Promise<void> {
    await inTransaction(this.dataSource, async (manager) => {
      const now = await holdClient(manager, clientId);
      const running = await runningUntil(manager, clientId, now);
      if (running === null) throw new ClientError(`client ${clientId} has no rotation that could be finished`);
      await manager.delete(ClientSecret, { clientId, expiresAt: Not(IsNull()) });
    });
    this.audit.record('secret.rotation-finished', { client: clientId });
  }
}

/** Locks the client's row until the transaction ends, and answers with the time then. */
async function holdClient(manager: EntityManager, id: string): Promise<number> {
  const client = await manager.findOne(Client, { where: { id }, lock: { mode: 'pessimistic_write' } });
  if (client?.id !== id) throw new UnknownClientError(id);
  return databaseNow(manager);
}

async function refuseSecondRotation(manager: EntityManager, clientId: string, now: number): Promise<void> {
  const until = await runningUntil(manager, clientId, now);
  if (until === null) return;
  throw new ClientError(
    `client ${clientId} is rotating its secret until ${new Date(until).toISOString()}; ` +
      `"usher client finish-rotation ${clientId}" ends that now`,
  );
}

async function runningUntil(manager: EntityManager, clientId: string, now: number): Promise<number | null> {
  const old = await manager.findOneBy(ClientSecret, { clientId, expiresAt: MoreThan(now) });
  return old?.expiresAt ?? null;
}
