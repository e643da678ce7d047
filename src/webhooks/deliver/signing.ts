import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import type { ClientSecret } from '../../clients/client.entity.js';
import { ClientSecrets, type SigningPair } from '../../clients/secrets/client-secrets.js';
import { Batcher } from '../../database/statements/batcher.js';
import { NONCE_LENGTH, signatures } from '../../values/notification.js';
import { randomAlphanumeric } from '../../values/identifier.js';
import { VERSION } from '../../values/version.js';
import type { SignedRequest } from '../transport/notification-sender.js';

export interface SigningSecret {
  /** Makes X-Signature. */
  current: string;
  /** Makes X-Signature-Next while the secret is being changed, else null. */
  next: string | null;
}

const MAX_OPENED = 1_000;

/** The secrets that sign notifications. Concurrent deliveries share a query, and what was decrypted is remembered. */
@Injectable()
export class SigningSecrets {
  private readonly opened = new LRUCache<string, string>({ max: MAX_OPENED });
  private readonly lookups: Batcher<string, SigningPair | undefined>;

  constructor(private readonly secrets: ClientSecrets) {
    this.lookups = new Batcher(async (clientIds) => {
      const found = await secrets.signingPairs([...new Set(clientIds)]);
      return clientIds.map((id) => found.get(id));
    });
  }

  /** Throws if the client has no valid secret or the master key is missing. */
  async of(clientId: string): Promise<SigningSecret> {
    const pair = await this.lookups.run(clientId);
    if (!pair) throw new Error(`client ${clientId} has no secret`);
    return { current: this.open(pair.current), next: pair.next && this.open(pair.next) };
  }

  /** The row says which secret is valid; only its decryption is remembered. A changed row is decrypted again. */
  private open(secret: ClientSecret): string {
    const key = `${secret.keyId} ${secret.clientId} ${secret.sealed}`;
    const opened = this.opened.get(key) ?? this.secrets.open(secret);
    this.opened.set(key, opened);
    return opened;
  }
}

/** Signs with a new nonce (specification 6.2). `now` is the database's time, because the clock of a worker may be wrong. */
export function signedRequest(
  secret: SigningSecret,
  { id, attempt, url, body }: Pick<SignedRequest, 'url' | 'body'> & { id: string; attempt: number },
  now: number,
): SignedRequest {
  const timestamp = String(Math.floor(now / 1_000));
  const nonce = randomAlphanumeric(NONCE_LENGTH);
  const headers = {
    'Content-Type': 'application/json',
    'User-Agent': `Usher/${VERSION}`,
    'X-Timestamp': timestamp,
    'X-Nonce-Str': nonce,
    ...signatures(secret, timestamp, nonce, body),
    'X-Webhook-Id': id,
    'X-Webhook-Attempt': String(attempt),
  };
  return { url, headers, body };
}
