import { hash } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { type DataSource, type EntityManager, IsNull, LessThanOrEqual, MoreThan, Not } from 'typeorm';
import { AuditLog } from '../../audit/audit.module.js';
import { USHER_DATA_SOURCE } from '../../database/data-source.js';
import { databaseNow, inTransaction } from '../../database/sql.js';
import { INVALID_CREDENTIALS } from '../../http/basic-credentials.js';
import { BASIC_CHALLENGE } from '../../http/error-response.js';
import { conflict, type Problem, unauthorized } from '../../http/problem.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import type { Actor } from '../../values/actor.js';
import { newId } from '../../values/identifier.js';
import { endOpenAuthorizations } from '../authorization.entity.js';
import { newSecret } from '../client-credentials.js';
import { Client, ClientSecret, LEAKED, NEXT_GENERATION } from '../client.entity.js';
import { getClient } from '../clients.service.js';
import { addNotice, endPortalAccess } from '../portal.entity.js';
import { ClientSecrets } from './client-secrets.js';
import { Vault } from './vault.js';

interface RotatedSecret {
  /** The new secret. It cannot be shown again. */
  secret: string;
  /** When the old secret expires, by the database's clock, in milliseconds since 1970. */
  oldValidUntil: number;
}

interface RotateOptions {
  revokeTokens?: boolean;
  /** The old secret authenticates nobody from now on. During the overlap it only signs. */
  hasLeaked?: boolean;
  /** While both secrets are valid, a rotation with the same key is answered again with the same secret. */
  repeatKey?: string | undefined;
  /** The digest of the portal session that stays open after a leak. All others end. */
  keptSession?: string | undefined;
  /** The secret that authenticated the request: 401 if it does so no longer. Null: the caller has no secret. */
  secretId?: string | null;
  /** For the audit. */
  actor?: Actor | undefined;
}

/** Replaces client secrets. Each change locks the client's row, so at most two secrets are valid. */
@Injectable()
export class SecretRotation {
  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    private readonly vault: Vault,
    private readonly secrets: ClientSecrets,
    private readonly audit: AuditLog,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {}

  /**
   * Both secrets are valid during the overlap. With `overlapMs` 0 the old secret expires immediately. `revokeTokens` also
   * revokes every token and code.
   */
  async rotate(
    clientId: string,
    overlapMs: number,
    { revokeTokens = false, hasLeaked = false, repeatKey, keptSession, secretId = null, actor }: RotateOptions = {},
  ): Promise<RotatedSecret> {
    const rotationKey = repeatKey === undefined ? null : hash('sha256', repeatKey, 'base64url');
    return inTransaction(this.dataSource, async (manager) => {
      const { client, now, overlapEnd } = await lockClient(manager, clientId);
      const requester = { clientId, generation: client.tokenGeneration, rememberedSecret: secretId };
      if (!(await this.secrets.isStillValid(requester, manager)))
        throw unauthorized(INVALID_CREDENTIALS, BASIC_CHALLENGE);
      const answered = rotationKey && (await this.answered(manager, clientId, rotationKey, overlapEnd));
      if (answered) return answered;
      if (overlapEnd !== null) throw rotationInProgress(clientId, overlapEnd);
      const ending = { expiresAt: now + overlapMs, ...(hasLeaked && { digest: LEAKED }) };
      await manager.update(ClientSecret, { clientId, expiresAt: IsNull() }, ending);
      await manager.delete(ClientSecret, { clientId, expiresAt: LessThanOrEqual(now) });
      const secret = await this.issue(manager, client, now, rotationKey);
      if (hasLeaked) await endPortalAccess(manager, clientId, keptSession);
      if (revokeTokens) {
        await manager.update(Client, { id: clientId }, NEXT_GENERATION);
        await endOpenAuthorizations(manager, { clientId });
      }
      const detail = { oldValidUntil: new Date(now + overlapMs).toISOString(), tokensRevoked: revokeTokens, hasLeaked };
      await this.audit.record({ action: 'secret.rotated', subject: `client:${clientId}`, actor, detail }, manager);
      return { secret, oldValidUntil: ending.expiresAt };
    });
  }

  /** Replaces the new secret, which nobody received; it ends at once. The old one stays as it is. 409 without a rotation. */
  async replace(clientId: string, actor?: Actor): Promise<RotatedSecret> {
    return inTransaction(this.dataSource, async (manager) => {
      const { client, now, overlapEnd } = await lockClient(manager, clientId);
      if (overlapEnd === null) throw noRotation(clientId);
      await manager.delete(ClientSecret, { clientId, expiresAt: IsNull() });
      const secret = await this.issue(manager, client, now);
      await this.audit.record({ action: 'secret.replaced', subject: `client:${clientId}`, actor }, manager);
      return { secret, oldValidUntil: overlapEnd };
    });
  }

  /** The contact of the client is told. */
  private async issue(
    manager: EntityManager,
    { id: clientId, contact }: Client,
    createdAt: number,
    rotationKey: string | null = null,
  ): Promise<string> {
    if (contact) await addNotice(manager, this.options, { clientId, kind: 'secret', contact });
    const secret = newSecret();
    const id = newId(this.options.environment, createdAt);
    const sealed = this.vault.seal(secret, clientId);
    await manager.insert(ClientSecret, { id, clientId, ...sealed, createdAt, expiresAt: null, rotationKey });
    return secret;
  }

  /** Ends the overlap now. Only the new secret stays valid. 409 if there is none. */
  async finish(clientId: string, actor?: Actor): Promise<void> {
    if (await this.endOverlap(clientId, actor)) return;
    throw noRotation(clientId);
  }

  /**
   * Like {@link finish}, for a client that proves by `presented` that it has the new secret; 409 if it does not. Without a
   * rotation nothing changes, because the answer to an earlier request may have been lost.
   */
  async finishWith(clientId: string, presented: string[], actor?: Actor): Promise<void> {
    await this.endOverlap(clientId, actor, (permanent) => {
      if (!presented.some((secret) => this.vault.match(secret, permanent))) throw useNewSecret();
    });
  }

  /** False without a rotation. `check` gets the secrets that stay valid, and may refuse. */
  private endOverlap(
    clientId: string,
    actor: Actor | undefined,
    check: (permanent: ClientSecret[]) => void = () => undefined,
  ): Promise<boolean> {
    return inTransaction(this.dataSource, async (manager) => {
      const { overlapEnd } = await lockClient(manager, clientId);
      if (overlapEnd === null) return false;
      check(await manager.findBy(ClientSecret, { clientId, expiresAt: IsNull() }));
      await manager.delete(ClientSecret, { clientId, expiresAt: Not(IsNull()) });
      await this.audit.record({ action: 'secret.rotation-finished', subject: `client:${clientId}`, actor }, manager);
      return true;
    });
  }

  /** The answer to an earlier rotation with this key; null if there was none. */
  private async answered(
    manager: EntityManager,
    clientId: string,
    rotationKey: string,
    oldValidUntil: number | null,
  ): Promise<RotatedSecret | null> {
    const issued = await manager.findOneBy(ClientSecret, { clientId, rotationKey, expiresAt: IsNull() });
    if (!issued) return null;
    if (oldValidUntil === null) throw rotationEnded();
    return { secret: this.vault.open(issued, clientId), oldValidUntil };
  }
}

const noRotation = (clientId: string): Problem => conflict(`client ${clientId} has no rotation in progress`);

export const useNewSecret = (): Problem =>
  conflict('authenticate with the new secret to end the old one, so that you are not locked out');

export const rotationEnded = (): Problem =>
  conflict('the rotation of this Idempotency-Key has ended; use a new key for another rotation');

export const rotationInProgress = (clientId: string, until: number): Problem =>
  conflict(
    `client ${clientId} already has a rotation in progress until ${new Date(until).toISOString()}; ` +
      `"usher client finish-rotation ${clientId}" or POST /client/secret/finish ends it now`,
  );

/**
 * Locks the client's row until the transaction ends. Returns it, the current database time, and the end of the overlap of a
 * rotation in progress.
 */
async function lockClient(manager: EntityManager, id: string) {
  const client = await getClient(manager, id, 'pessimistic_write');
  const now = await databaseNow(manager);
  const old = await manager.findOneBy(ClientSecret, { clientId: id, expiresAt: MoreThan(now) });
  return { client, now, overlapEnd: old?.expiresAt ?? null };
}
