import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { attemptHeaders, NONCE_LENGTH, type SigningKeys, timestampOf } from '../../../packages/receiver/dist/tools.js';
import type { ClientSecret } from '../../clients/client.entity.js';
import { ClientSecrets, type SigningPair } from '../../clients/secrets/client-secrets.js';
import { Batcher } from '../../database/statements/batcher.js';
import { conflict, nullForProblem, type Problem } from '../../http/problem.js';
import { randomAlphanumeric } from '../../values/identifier.js';
import { VERSION } from '../../values/version.js';
import type { SignedRequest } from '../transport/notification-sender.js';
import type { Webhook, WebhookAttempt } from '../webhook.entity.js';

export interface SigningSecret extends SigningKeys {
  ids?: string[];
}

const MAX_OPENED = 1_000;

/** The secrets that sign notifications. Concurrent deliveries share a query, and decrypted secrets are cached. */
@Injectable()
export class SigningSecrets {
  /** By `Claim.sealedSecrets`. */
  private readonly opened = new LRUCache<string, SigningSecret>({ max: MAX_OPENED });
  private readonly lookups: Batcher<string, SigningPair | undefined>;

  constructor(private readonly secrets: ClientSecrets) {
    this.lookups = new Batcher(async (clientIds) => {
      const found = await secrets.signingPairs([...new Set(clientIds)]);
      return clientIds.map((id) => found.get(id));
    });
  }

  /**
   * 409 if the client has no valid secret, 503 if the master key is missing. `sealed` is what a claim read of the valid
   * secrets; only for these the cache is used.
   */
  async of(clientId: string, sealed: string | null = null): Promise<SigningSecret> {
    const opened = this.opened.get(sealed ?? '');
    if (opened) return opened;
    const pair = await this.lookups.run(clientId);
    if (!pair) throw noSecret(clientId);
    const secret = this.opening(pair);
    this.opened.set(sealedOf(pair), secret);
    return secret;
  }

  /** What each attempt sent, signed again with these secrets, or a text that says why this is impossible. */
  sent({ id, notifyUrl: url, body }: Webhook, attempts: WebhookAttempt[], secrets: ClientSecret[]) {
    return attempts.map(({ number: attempt, signedWith }) => {
      if (signedWith === null)
        return 'Not recorded: the attempt is in progress, was cut off, or is of an earlier version.';
      const [timestamp, nonce, ...ids] = signedWith.split(' ');
      const [current, next = null] = ids.map((one) => secrets.find((secret) => secret.id === one) ?? null);
      if (!current || (ids[1] && !next)) return 'Its signature cannot be made again, because the secret has ended.';
      const unsigned = { id, attempt, url, body: Buffer.from(body) };
      try {
        return signedRequest(this.opening({ current, next }), unsigned, Number(timestamp) * 1_000, nonce);
      } catch (error) {
        nullForProblem(error);
        return 'Its signature cannot be made again, because the secret cannot be opened.';
      }
    });
  }

  private opening({ current, next }: SigningPair): SigningSecret {
    const ids = next ? [current.id, next.id] : [current.id];
    return { current: this.secrets.open(current), next: next && this.secrets.open(next), ids };
  }
}

export const noSecret = (clientId: string): Problem =>
  conflict(
    `client ${clientId} has no valid secret; its operator issues one with "usher client rotate-secret ${clientId}"`,
  );

/** As a claim reads it. If the database sorts the two texts differently, they are not found in the cache. */
function sealedOf({ current, next }: SigningPair): string {
  const both = [current, next ?? current].map(({ keyId, sealed }) => `${keyId} ${sealed}`);
  return both.toSorted().join(' ');
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
    'User-Agent': `Usher/${VERSION}`,
    ...attemptHeaders(secret, { id, attempt, body }, timestamp, nonce),
  };
  return { url, headers, body, signedWith: [timestamp, nonce, ...(secret.ids ?? [])].join(' ') };
}
