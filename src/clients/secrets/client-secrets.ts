import { USHER_DATA_SOURCE } from '../../database/data-source.js';
import { Inject, Injectable } from '@nestjs/common';
import { type DataSource, Repository, type SelectQueryBuilder } from 'typeorm';
import { nowExpression } from '../../database/sql.js';
import { Client, ClientSecret } from '../client.entity.js';
import { Vault } from './vault.js';

/** What a client's notifications are signed with; `next` only while a rotation overlaps. */
export interface SigningPair {
  current: ClientSecret;
  next: ClientSecret | null;
}

/** Reads the secrets of clients that are valid by the database's clock: to check one that was presented, and to sign. */
@Injectable()
export class ClientSecrets {
  private readonly secrets: Repository<ClientSecret>;

  constructor(
    @Inject(USHER_DATA_SOURCE) dataSource: DataSource,
    private readonly vault: Vault,
  ) {
    this.secrets = dataSource.getRepository(ClientSecret);
  }

  /** The client whose secret this is, or null: unknown, disabled and wrong are not told apart, nor by their timing. */
  async authenticate(id: string, secret: string): Promise<Client | null> {
    const secrets = (await this.valid()
      .innerJoinAndMapOne('secret.client', Client, 'client', 'client.id = secret.clientId')
      .andWhere('secret.clientId = :id', { id })
      .getMany()) as (ClientSecret & { client: Client })[];
    const matches = this.vault.matches(secret, secrets);
    const client = secrets[0]?.client;
    return matches && client?.id === id && client.disabledAt === null ? client : null;
  }

  /** By client id; a client without a valid secret is left out. */
  async signingPairs(clientIds: string[]): Promise<Map<string, SigningPair>> {
    const found = await this.valid().andWhere('secret.clientId IN (:...clientIds)', { clientIds }).getMany();
    const pairs = clientIds.map((id) => [id, signers(found.filter(({ clientId }) => clientId === id))] as const);
    return new Map(pairs.filter((entry): entry is [string, SigningPair] => entry[1] !== null));
  }

  /** The secret itself; throws where its master key is missing. */
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

/** The one of two secrets that is on its way out has an end; the one that stays has none. */
interface Expiring {
  expiresAt: number | null;
}

/**
 * Which of a client's valid secrets makes X-Signature, and which X-Signature-Next: while a rotation overlaps the old one
 * still signs, so that receivers change over when they like. Null where there is no secret at all.
 */
export function signers<T extends Expiring>(valid: T[]): { current: T; next: T | null } | null {
  const old = valid.find(({ expiresAt }) => expiresAt !== null);
  const lasting = valid.find(({ expiresAt }) => expiresAt === null);
  const current = old ?? lasting;
  return current ? { current, next: old && lasting ? lasting : null } : null;
}
