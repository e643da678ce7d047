import { LRUCache } from 'lru-cache';
import type { Client, ClientSecret } from '../client.entity.js';

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

interface Remembered {
  client: Client;
  secrets: ClientSecret[];
}

/** The clients that authenticated within the last seconds, so that not every request reads them. */
export class RememberedClients {
  private readonly clients = new LRUCache<string, Remembered>({ max: MAX_CLIENTS, ttl: TTL_MS, ttlResolution: 0 });

  get(id: string): Remembered | undefined {
    return this.clients.get(id);
  }

  /** `readAt`: when the query for them began, by `performance.now()`. */
  remember(client: Client, secrets: ClientSecret[], readAt: number): void {
    const ttl = Math.floor(TTL_MS - (performance.now() - readAt));
    if (ttl >= 1) this.clients.set(client.id, { client: Object.freeze(client), secrets }, { ttl });
  }

  forget(id: string): void {
    this.clients.delete(id);
  }
}
