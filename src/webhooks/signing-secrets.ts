import { Injectable } from '@nestjs/common';
import { ClientSecrets, type SigningPair } from '../clients/client-secrets.js';
import { Batcher } from './batcher.js';

export interface SigningSecret {
  /** Makes X-Signature. */
  current: string;
  /** Makes X-Signature-Next, while a rotation overlaps. */
  next: string | null;
}

/** The secrets that sign notifications. Deliveries of the same moment share a query. */
@Injectable()
export class SigningSecrets {
  private readonly lookups: Batcher<string, SigningPair | undefined>;

  constructor(private readonly secrets: ClientSecrets) {
    this.lookups = new Batcher(async (clientIds) => {
      const found = await secrets.signingPairs([...new Set(clientIds)]);
      return clientIds.map((id) => found.get(id));
    });
  }

  /** Throws where the client has no valid secret, or its master key is missing. */
  async of(clientId: string): Promise<SigningSecret> {
    const pair = await this.lookups.run(clientId);
    if (!pair) throw new Error(`client ${clientId} has no secret`);
    return { current: this.secrets.open(pair.current), next: pair.next && this.secrets.open(pair.next) };
  }
}
