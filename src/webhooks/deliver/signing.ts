import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { attemptHeaders, NONCE_LENGTH, type SigningKeys, timestampOf } from '../../../packages/receiver/dist/tools.js';
import type { ClientSecret } from '../../clients/client.entity.js';
import { ClientSecrets, type SigningPair } from '../../clients/secrets/client-secrets.js';
import { Batcher } from '../../database/statements/batcher.js';
import { randomAlphanumeric } from '../../values/identifier.js';
import { VERSION } from '../../values/version.js';
import type { SignedRequest } from '../transport/notification-sender.js';
import type { Webhook, WebhookAttempt } from '../webhook.entity.js';

export interface SigningSecret extends SigningKeys {
  ids?: string[];
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
    return this.opening(pair);
  }

  /** What each attempt sent, made again with these secrets; a text says why it cannot be. */
  sent({ id, notifyUrl: url, body }: Webhook, attempts: WebhookAttempt[], secrets: ClientSecret[]) {
    return attempts.map(({ number: attempt, signedWith }) => {
      if (signedWith === null)
        return 'Not recorded: the attempt is in progress, was cut off, or is of an earlier version.';
      const [timestamp, nonce, ...ids] = signedWith.split(' ');
      const [current, next = null] = ids.map((one) => secrets.find((secret) => secret.id === one) ?? null);
      if (!current || (ids[1] && !next)) return 'Its signature cannot be made again, because the secret has ended.';
      const unsigned = { id, attempt, url, body: Buffer.from(body) };
      return signedRequest(this.opening({ current, next }), unsigned, Number(timestamp) * 1_000, nonce);
    });
  }

  private opening({ current, next }: SigningPair): SigningSecret {
    const ids = next ? [current.id, next.id] : [current.id];
    return { current: this.open(current), next: next && this.open(next), ids };
  }

  /** The row says which secret is valid; only its decryption is remembered. A changed row is decrypted again. */
  private open(secret: ClientSecret): string {
    const key = `${secret.keyId} ${secret.clientId} ${secret.sealed}`;
    const opened = this.opened.get(key) ?? this.secrets.open(secret);
    this.opened.set(key, opened);
    return opened;
  }
}

/** Signs (specification 6.2). `now` is the database's time, because the clock of a worker may be wrong. */
export function signedRequest(
  secret: SigningSecret,
  { id, attempt, url, body }: Pick<SignedRequest, 'url' | 'body'> & { id: string; attempt: number },
  now: number,
  nonce = randomAlphanumeric(NONCE_LENGTH),
): SignedRequest {
  const timestamp = timestampOf(now);
  const headers = {
    ...attemptHeaders(secret, { id, attempt, body }, timestamp, nonce),
    'User-Agent': `Usher/${VERSION}`,
  };
  return { url, headers, body, signedWith: [timestamp, nonce, ...(secret.ids ?? [])].join(' ') };
}
