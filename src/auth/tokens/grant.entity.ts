import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import {
  CLIENT_ID_LENGTH,
  int,
  nullable,
  OWN_ID_LENGTH,
  OWNER_ID_LENGTH,
  text,
  wholeNumber,
} from '../../database/columns.js';

const DIGEST_LENGTH = 43;

/** A refresh token's stored expiry is up to one hour later than promised, so frequent refreshes write it only once an hour. */
export const EXPIRY_MARGIN_MS = 3_600_000;

/** What a grant and an access token have in common. */
abstract class Issued {
  @Column(text('client_id', CLIENT_ID_LENGTH))
  clientId: string;

  /** The resource owner who allowed it. Null: the client itself, by its credentials. */
  @Column(nullable(text('owner_id', OWNER_ID_LENGTH)))
  ownerId: string | null;

  /** The client's generation when this was issued, see client.entity.ts. */
  @Column(int('generation'))
  generation: number;

  @Column(wholeNumber('created_at'))
  createdAt: number;

  /** Of a grant: expiry of the refresh token, at most {@link EXPIRY_MARGIN_MS} later than promised. Each use extends it. */
  @Column(wholeNumber('expires_at'))
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
  @PrimaryColumn(text('id', OWN_ID_LENGTH))
  id: string;

  @Column(text('refresh_digest', DIGEST_LENGTH))
  refreshDigest: string;

  /** The first access token. Null once it is revoked. */
  @Column(nullable(text('access_digest', DIGEST_LENGTH)))
  accessDigest: string | null;

  @Column(wholeNumber('access_expires_at'))
  accessExpiresAt: number;
}

/** An access token that a refresh added to its grant. It repeats the owner, so that a request with it needs one query. */
@Entity('usher_access_token')
@Index('usher_access_token_grant', ['grantId'])
@Index('usher_access_token_expiry', ['expiresAt'])
export class AccessToken extends Issued {
  @PrimaryColumn(text('digest', DIGEST_LENGTH))
  digest: string;

  @Column(text('grant_id', OWN_ID_LENGTH))
  grantId: string;
}
