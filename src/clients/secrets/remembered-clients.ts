import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Client } from '../client.entity.js';

/** Disabling a client must take effect in every process within 5 s, so this is shorter. */
const TTL_MS = 4_000;
const MAX_CLIENTS = 10_000;

/** A client that presented a valid secret. */
export interface AuthenticatedClient {
  client: Client;
  /**
   * The id of the secret if both were remembered from an earlier request. A token is issued only if both are still valid, or
   * {@link ClientChanged} is thrown.
   */
  rememberedSecret: string | null;
}

/** Whose request it is, as authenticated. */
export interface Requester {
  clientId: string;
  generation: number;
  /** Set if client and secret were remembered: then the statement checks that both are still valid. */
  rememberedSecret: string | null;
}

/** The client was remembered, and it or its secret is no longer valid. Authenticate it again. */
export class ClientChanged extends Error {}

/** The clients that authenticated within the last seconds, so that not every request reads them. */
export class RememberedClients {
  /** Keyed by a digest of id and secret, because secrets must not stay in memory. */
  private readonly clients = new LRUCache<string, AuthenticatedClient>({
    max: MAX_CLIENTS,
    ttl: TTL_MS,
    ttlResolution: 0,
  });

  /** The client that presented this secret. */
  find(id: string, secret: string): AuthenticatedClient | undefined {
    return this.clients.get(digestOf(id, secret));
  }

  /** `secretId`: of the stored secret that fits. `readAt`: when the query for it began, by `performance.now()`. */
  remember(client: Client, secret: string, secretId: string, readAt: number): void {
    const ttl = Math.floor(TTL_MS - (performance.now() - readAt));
    const entry = { client: Object.freeze(client), rememberedSecret: secretId };
    if (ttl >= 1) this.clients.set(digestOf(client.id, secret), entry, { ttl });
  }

  forget(id: string): void {
    for (const [key, { client }] of [...this.clients.entries()]) if (client.id === id) this.clients.delete(key);
  }
}

/** As JSON, because both may contain any character. No key is needed: the digest is never stored, and this memory has the keys too. */
const digestOf = (id: string, secret: string): string => hash('sha256', JSON.stringify([id, secret]), 'base64url');
