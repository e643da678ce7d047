import { Entity, Index } from 'typeorm';
import {
  CLIENT_ID_LENGTH,
  DIGEST_LENGTH,
  Int,
  NULLABLE,
  OWN_ID_LENGTH,
  OWNER_ID_LENGTH,
  PRIMARY,
  Text,
  WholeNumber,
} from '../../database/columns.js';

/** A refresh token's stored expiry is up to one hour later than promised, so frequent refreshes write it only once an hour. */
export const EXPIRY_MARGIN_MS = 3_600_000;

/** What a grant and an access token have in common. */
abstract class Issued {
  @Text(CLIENT_ID_LENGTH)
  clientId: string;

  /** The resource owner who allowed it. Null: the client itself, by its credentials. */
  @Text(OWNER_ID_LENGTH, NULLABLE)
  ownerId: string | null;

  /** The client's generation when this was issued, see client.entity.ts. */
  @Int()
  generation: number;

  @WholeNumber()
  createdAt: number;

  /** Of a grant: expiry of the refresh token, at most {@link EXPIRY_MARGIN_MS} later than promised. Each use extends it. */
  @WholeNumber()
  expiresAt: number;
}

/**
 * The result of one token request: a refresh token and its first access token, stored as digests. One row, because token
 * requests are the most frequent ones. Each refresh adds an {@link AccessToken}.
 */
@Entity('usher_grant')
@Index('usher_grant_refresh_digest', ['refreshDigest'], { unique: true })
@Index('usher_grant_access_digest', ['accessDigest'], { unique: true })
@Index('usher_grant_expiry', ['expiresAt'])
@Index('usher_grant_owner', ['ownerId'], { where: 'owner_id IS NOT NULL' })
export class Grant extends Issued {
  @Text(OWN_ID_LENGTH, PRIMARY)
  id: string;

  @Text(DIGEST_LENGTH)
  refreshDigest: string;

  /** The first access token. Null once it is revoked. */
  @Text(DIGEST_LENGTH, NULLABLE)
  accessDigest: string | null;

  @WholeNumber()
  accessExpiresAt: number;
}

/** An access token that a refresh added to its grant. It repeats the owner, so that a request with it needs one query. */
@Entity('usher_access_token')
@Index('usher_access_token_grant', ['grantId'])
@Index('usher_access_token_expiry', ['expiresAt'])
export class AccessToken extends Issued {
  @Text(DIGEST_LENGTH, PRIMARY)
  digest: string;

  @Text(OWN_ID_LENGTH)
  grantId: string;
}
