import { Inject, Injectable } from '@nestjs/common';
import { type DataSource, type EntityManager, type FindOptionsWhere, In } from 'typeorm';
import { AuditLog } from '../../audit/audit.module.js';
import { Client } from '../../clients/client.entity.js';
import { USHER_DATA_SOURCE } from '../../database/data-source.js';
import { MAX_IDS } from '../../database/rows.js';
import { inTransaction, joinTransaction } from '../../database/sql.js';
import type { Actor } from '../../values/actor.js';
import { requiredId } from '../../values/identifier.js';
import { AccessTokens } from '../bearer/access-tokens.js';
import { AccessToken, Grant } from '../tokens/grant.entity.js';
import { Authorization, Consent } from '../../clients/authorization.entity.js';

/** An application that a resource owner allowed to act for them. */
export interface ConnectedApplication {
  clientId: string;
  name: string;
  /** In milliseconds since 1970. */
  givenAt: number;
}

/** The applications that resource owners allowed to act for them. */
@Injectable()
export class ConnectedApplications {
  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    private readonly audit: AuditLog,
    private readonly accessTokens: AccessTokens,
  ) {}

  /** The newest first. */
  async list(ownerId: string): Promise<ConnectedApplication[]> {
    const { manager } = this.dataSource;
    const consents = await manager.find(Consent, {
      where: { ownerId: requiredId(ownerId) },
      order: { givenAt: 'DESC' },
    });
    const clients = await manager.findBy(Client, { id: In(consents.map(({ clientId }) => clientId)) });
    const names = new Map(clients.map(({ id, name }) => [id, name]));
    return consents.map(({ clientId, givenAt }) => ({ clientId, name: names.get(clientId) ?? clientId, givenAt }));
  }

  /** Takes back the owner's consent to one client: its codes and tokens for this owner end. Nothing happens if there is none. */
  async withdraw(ownerId: string, clientId: string, actor?: Actor): Promise<void> {
    const revoked = await inTransaction(this.dataSource, async (manager) => {
      const { isConnected, grants } = await end(manager, {
        ownerId: requiredId(ownerId),
        clientId: requiredId(clientId),
      });
      const detail = { owner: ownerId, grants: grants.length };
      const subject = `client:${clientId}`;
      if (isConnected) await this.audit.record({ action: 'consent.withdrawn', subject, actor, detail }, manager);
      return grants;
    });
    this.accessTokens.forgetGrants(revoked);
  }

  /** The same for all clients, in the caller's transaction: call it when an account is closed or its password is changed. */
  async withdrawAll(ownerId: string, manager: EntityManager): Promise<void> {
    const holder = { ownerId: requiredId(ownerId) };
    const { grants } = await joinTransaction(this.dataSource, { manager }, (joined) => end(joined, holder));
    this.accessTokens.forgetGrants(grants);
  }
}

/** Deletes codes first: an exchange at the same moment either finds no code, or its grant is found here. */
async function end(manager: EntityManager, holder: { ownerId: string; clientId?: string }) {
  await manager.delete(Authorization, holder);
  const { affected } = await manager.delete(Consent, holder);
  return { isConnected: (affected ?? 0) > 0, grants: await revokeGrants(manager, holder) };
}

/**
 * Deletes grants with their access tokens. Returns their ids. They are locked first: otherwise a refresh at the same moment
 * could leave a valid access token behind.
 */
export async function revokeGrants(manager: EntityManager, where: FindOptionsWhere<Grant>): Promise<string[]> {
  const grants = await manager.find(Grant, { select: { id: true }, where, lock: { mode: 'pessimistic_write' } });
  const ids = grants.map(({ id }) => id).sort();
  for (let first = 0; first < ids.length; first += MAX_IDS) {
    const some = In(ids.slice(first, first + MAX_IDS));
    await manager.delete(AccessToken, { grantId: some });
    await manager.delete(Grant, { id: some });
  }
  return ids;
}
