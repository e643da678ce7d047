import { Inject, Injectable } from '@nestjs/common';
import { type DataSource, Repository, type SelectQueryBuilder } from 'typeorm';
import { USHER_DATA_SOURCE } from '../../database/data-source.js';
import { nowExpression } from '../../database/sql.js';
import { Client, ClientSecret } from '../client.entity.js';
import { Vault } from './vault.js';

/** The secrets that sign a client's notifications. `next` is set only during the overlap of a rotation. */
export interface SigningPair {
  current: ClientSecret;
  next: ClientSecret | null;
}

/** Reads the client secrets that are valid by the database's clock, for authentication and for signing. */
@Injectable()
export class ClientSecrets {
  private readonly secrets: Repository<ClientSecret>;

  constructor(
    @Inject(USHER_DATA_SOURCE) dataSource: DataSource,
    private readonly vault: Vault,
  ) {
    this.secrets = dataSource.getRepository(ClientSecret);
  }

  /** Null for an unknown or disabled client or a wrong secret. The caller cannot distinguish these cases by timing. */
  async authenticate(id: string, secret: string): Promise<Client | null> {
    const secrets = (await this.valid()
      .innerJoinAndMapOne('secret.client', Client, 'client', 'client.id = secret.clientId')
      .andWhere('secret.clientId = :id', { id })
      .getMany()) as (ClientSecret & { client: Client })[];
    const matches = this.vault.matches(secret, secrets);
    const client = secrets[0]?.client;
    return matches && client?.id === id && client.disabledAt === null ? client : null;
  }

  /** Keyed by client id. A client without a valid secret is omitted. */
  async signingPairs(clientIds: string[]): Promise<Map<string, SigningPair>> {
    const found = await this.valid().andWhere('secret.clientId IN (:...clientIds)', { clientIds }).getMany();
    const pairs = clientIds.map((id) => [id, signers(found.filter(({ clientId }) => clientId === id))] as const);
    return new Map(pairs.filter((entry): entry is [string, SigningPair] => entry[1] !== null));
  }

  /** Decrypts the secret. Throws if its master key is missing. */
  open(secret: ClientSecret): string {
    return this.vault.open(secret, secret.clientId);
  }

  private valid(): SelectQueryBuilder<ClientSecret> {
    const now = nowExpression(this.secrets.manager.dataSource);
    return this.secrets
      .createQueryBuilder('secret')
      .where(`(secret.expiresAt IS NULL OR secret.expiresAt > ${now})`)
      .orderBy('secret.id');
  }
}

/** During a rotation the old secret has an expiry and the new secret has none. */
interface Expiring {
  expiresAt: number | null;
}

/**
 * Selects the secrets for X-Signature (`current`) and X-Signature-Next (`next`). During the overlap X-Signature is
 * still made with the old secret, so receivers can change at any time. Null if there is no valid secret.
 */
export function signers<T extends Expiring>(valid: T[]): { current: T; next: T | null } | null {
  const old = valid.find(({ expiresAt }) => expiresAt !== null);
  const permanent = valid.find(({ expiresAt }) => expiresAt === null);
  const current = old ?? permanent;
  return current ? { current, next: old && permanent ? permanent : null } : null;
}
