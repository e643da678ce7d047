import { hash } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { type DataSource, IsNull, Not } from 'typeorm';
import { Client, ClientSecret, LEAKED } from '../client.entity.js';
import { dialectOf, tableOf, USHER_DATA_SOURCE } from '../../database/data-source.js';
import { entityOf, runSql } from '../../database/statements/statement.js';
import { databaseNow } from '../../database/sql.js';
import { Vault } from './vault.js';

/** Disabling a client must take effect in every process within 5 s, so this is shorter. */
const TTL_MS = 4_000;
const MAX_CLIENTS = 10_000;

export interface AuthenticatedClient {
  client: Client;
  /** Of the secret that was presented. */
  secretId: string;
}

/** The authenticated client of a request. */
export interface Requester {
  clientId: string;
  generation: number;
  /** The id of its secret: the statement checks that both are still valid. Null: the client was authenticated just now. */
  rememberedSecret: string | null;
}

/** The remembered client or its secret is no longer valid. Authenticate the client by the database and repeat the work. */
export class ClientChanged extends Error {}

/** As JSON, because both may contain any character. No key is needed: the digest is never stored, and this memory has the keys too. */
const digestOf = (id: string, secret: string): string => hash('sha256', JSON.stringify([id, secret]), 'base64url');

/** The secrets that sign a client's notifications. `next` is set only during the overlap of a rotation. */
export interface SigningPair {
  current: ClientSecret;
  next: ClientSecret | null;
}

/** Reads the client secrets that are valid by the database's clock, for authentication and for signing. */
@Injectable()
export class ClientSecrets {
  /**
   * The clients that authenticated within the last seconds, so that not every request reads them. Keyed by a digest of id and
   * secret, because secrets must not stay in memory.
   */
  private readonly remembered = new LRUCache<string, AuthenticatedClient>({
    max: MAX_CLIENTS,
    ttl: TTL_MS,
    ttlResolution: 0,
  });

  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    private readonly vault: Vault,
  ) {}

  /**
   * The client of the first credentials that are valid. Null for an unknown or disabled client or a wrong secret. The caller
   * cannot distinguish these cases by timing: an id and a secret that have not been accepted within the last seconds are
   * looked up in the database. With `isFresh` all are.
   */
  async authenticate(
    credentials: { id: string; secret: string }[],
    isFresh = false,
  ): Promise<AuthenticatedClient | null> {
    for (const { id, secret } of credentials) {
      const found = (isFresh ? null : this.remembered.get(digestOf(id, secret))) ?? (await this.read(id, secret));
      if (found) return found;
    }
    return null;
  }

  /** The next request of this client is authenticated by the database. */
  forget(clientId: string): void {
    for (const [key, { client }] of [...this.remembered.entries()])
      if (client.id === clientId) this.remembered.delete(key);
  }

  /** Whether a remembered client and its secret are still valid. A client that was authenticated just now is. */
  async isStillValid(
    { clientId, generation, rememberedSecret }: Requester,
    manager = this.dataSource.manager,
  ): Promise<boolean> {
    if (rememberedSecret === null) return true;
    const secret = await manager.findOneBy(ClientSecret, { id: rememberedSecret, clientId, digest: Not(LEAKED) });
    if (!secret || (secret.expiresAt ?? Infinity) <= (await databaseNow(manager))) return false;
    return manager.existsBy(Client, { id: clientId, tokenGeneration: generation, disabledAt: IsNull() });
  }

  private async read(id: string, secret: string): Promise<AuthenticatedClient | null> {
    const readAt = performance.now();
    const key = digestOf(id, secret);
    this.remembered.delete(key);
    const secrets = (await this.dataSource
      .createQueryBuilder(ClientSecret, 'secret')
      .innerJoinAndMapOne('secret.client', Client, 'client', 'client.id = secret.clientId')
      .where('secret.clientId = :id', { id })
      .andWhere(`(secret.expiresAt IS NULL OR secret.expiresAt > ${dialectOf(this.dataSource).now})`)
      .orderBy('secret.id')
      .getMany()) as (ClientSecret & { client: Client })[];
    const match = this.vault.match(secret, secrets);
    const client = secrets[0]?.client;
    if (!match || client?.id !== id || client.disabledAt !== null) return null;
    // The time counts from the start of the query.
    const ttl = Math.floor(TTL_MS - (performance.now() - readAt));
    const found = { client: Object.freeze(client), secretId: match.id };
    if (ttl >= 1) this.remembered.set(key, found, { ttl });
    return found;
  }

  /** Keyed by client id. A client without a valid secret is omitted. */
  async signingPairs(clientIds: string[]): Promise<Map<string, SigningPair>> {
    const { isOneOf, now } = dialectOf(this.dataSource);
    const { rows } = await runSql(
      this.dataSource,
      (parameter) => `
        SELECT * FROM ${tableOf(this.dataSource, ClientSecret)}
        WHERE client_id ${isOneOf(parameter, clientIds)}
          AND (expires_at IS NULL OR expires_at > ${now})
        ORDER BY id`,
      'usher_signing_pairs',
    );
    const found = rows.map((row) => entityOf(this.dataSource, ClientSecret, row));
    return new Map(
      clientIds.flatMap((id) => {
        const pair = signers(found.filter(({ clientId }) => clientId === id));
        return pair ? [[id, pair] as const] : [];
      }),
    );
  }

  /** Decrypts the secret. Throws if its master key is missing. */
  open(secret: ClientSecret): string {
    return this.vault.open(secret, secret.clientId);
  }
}

/**
 * Selects the secrets for X-Signature (`current`) and X-Signature-Next (`next`). During the overlap X-Signature is
 * still made with the old secret, which has an expiry, so receivers can change at any time. Null if there is no valid secret.
 */
function signers(valid: ClientSecret[]): SigningPair | null {
  const old = valid.find(({ expiresAt }) => expiresAt !== null);
  const permanent = valid.find(({ expiresAt }) => expiresAt === null);
  const current = old ?? permanent;
  return current ? { current, next: old && permanent ? permanent : null } : null;
}
