import { Inject, Injectable } from '@nestjs/common';
import { type DataSource, type EntityManager, IsNull, LessThanOrEqual, MoreThan, Not } from 'typeorm';
import { AuditLog } from '../../audit/audit.module.js';
import { USHER_DATA_SOURCE } from '../../database/data-source.js';
import { databaseNow, inTransaction } from '../../database/sql.js';
import { conflict } from '../../http/problem.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import type { Actor } from '../../values/actor.js';
import { newId } from '../../values/identifier.js';
import { newSecret } from '../client-credentials.js';
import { Client, ClientSecret, NEXT_GENERATION } from '../client.entity.js';
import { unknownClient } from '../clients.service.js';
import { Vault } from './vault.js';

export interface RotatedSecret {
  /** The new secret. It cannot be shown again. */
  secret: string;
  /** When the old secret expires, by the database's clock, in milliseconds since 1970. */
  oldValidUntil: number;
}

export interface RotateOptions {
  revokeTokens?: boolean;
  /** For the audit. */
  actor?: Actor | undefined;
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

  /**
   * Both secrets are valid during the overlap. With `overlapMs` 0 the old secret expires immediately. `revokeTokens` also
   * revokes every token, for a secret that has leaked.
   */
  async rotate(
    clientId: string,
    overlapMs: number,
    { revokeTokens = false, actor }: RotateOptions = {},
  ): Promise<RotatedSecret> {
    const secret = newSecret();
    const oldValidUntil = await inTransaction(this.dataSource, async (manager) => {
      const now = await lockClient(manager, clientId);
      await rejectSecondRotation(manager, clientId, now);
      await manager.update(ClientSecret, { clientId, expiresAt: IsNull() }, { expiresAt: now + overlapMs });
      await manager.delete(ClientSecret, { clientId, expiresAt: LessThanOrEqual(now) });
      const id = newId(this.options.environment, now);
      const sealed = this.vault.seal(secret, clientId);
      await manager.insert(ClientSecret, { id, clientId, ...sealed, createdAt: now, expiresAt: null });
      if (revokeTokens) await manager.update(Client, { id: clientId }, NEXT_GENERATION);
      const detail = { oldValidUntil: new Date(now + overlapMs).toISOString(), tokensRevoked: revokeTokens };
      await this.audit.record({ action: 'secret.rotated', subject: `client:${clientId}`, actor, detail }, manager);
      return now + overlapMs;
    });
    return { secret, oldValidUntil };
  }

  /** Ends the overlap now. Only the new secret stays valid. */
  async finish(clientId: string, actor?: Actor): Promise<void> {
    await inTransaction(this.dataSource, async (manager) => {
      const now = await lockClient(manager, clientId);
      const until = await overlapEnd(manager, clientId, now);
      if (until === null) throw conflict(`client ${clientId} has no rotation in progress`);
      await manager.delete(ClientSecret, { clientId, expiresAt: Not(IsNull()) });
      await this.audit.record({ action: 'secret.rotation-finished', subject: `client:${clientId}`, actor }, manager);
    });
  }
}

/** Locks the client's row until the transaction ends. Returns the current database time. */
async function lockClient(manager: EntityManager, id: string): Promise<number> {
  const client = await manager.findOne(Client, { where: { id }, lock: { mode: 'pessimistic_write' } });
  if (client?.id !== id) throw unknownClient(id);
  return databaseNow(manager);
}

async function rejectSecondRotation(manager: EntityManager, clientId: string, now: number): Promise<void> {
  const until = await overlapEnd(manager, clientId, now);
  if (until === null) return;
  throw conflict(
    `client ${clientId} already has a rotation in progress until ${new Date(until).toISOString()}; ` +
      `"usher client finish-rotation ${clientId}" ends it now`,
  );
}

async function overlapEnd(manager: EntityManager, clientId: string, now: number): Promise<number | null> {
  const old = await manager.findOneBy(ClientSecret, { clientId, expiresAt: MoreThan(now) });
  return old?.expiresAt ?? null;
}
