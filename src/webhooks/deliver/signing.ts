import { Injectable } from '@nestjs/common';
import { ClientSecrets, type SigningPair } from '../../clients/secrets/client-secrets.js';
import { NONCE_LENGTH, signatures } from '../../protocol/notification.js';
import { randomAlphanumeric } from '../../values/identifier.js';
import { VERSION } from '../../values/version.js';
import type { SignedRequest } from '../transport/notification-sender.js';
import { Batcher } from './batcher.js';

export interface SigningSecret {
  /** Makes X-Signature. */
  current: string;
  /** Makes X-Signature-Next while the secret is being changed, else null. */
  next: string | null;
}

/** The secrets that sign notifications. Concurrent deliveries share a query. */
@Injectable()
export class SigningSecrets {
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
    return { current: this.secrets.open(pair.current), next: pair.next && this.secrets.open(pair.next) };
  }
}

export interface Unsigned {
  id: string;
  attempt: number;
  url: string;
  body: Buffer;
}

/** Signs with the current time and a new nonce (specification 6.2). */
export function signedRequest(secret: SigningSecret, { id, attempt, url, body }: Unsigned): SignedRequest {
  const timestamp = String(Math.floor(Date.now() / 1_000));
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
