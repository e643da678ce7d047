import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { CLIENT_ID_LENGTH, OWN_ID_LENGTH, text, wholeNumber } from '../../database/columns.js';

const DIGEST_LENGTH = 43;

/** The result of one token request: a refresh token, stored as a digest, and the access tokens that belong to it. */
@Entity('usher_grant')
@Index('usher_grant_refresh_digest', ['refreshDigest'], { unique: true })
@Index('usher_grant_expiry', ['expiresAt'])
export class Grant {
  @PrimaryColumn(text('id', OWN_ID_LENGTH))
  id: string;

  @Column(text('client_id', CLIENT_ID_LENGTH))
  clientId: string;

  @Column(text('refresh_digest', DIGEST_LENGTH))
  refreshDigest: string;

  @Column(wholeNumber('created_at'))
  createdAt: number;

  /** Expiry of the refresh token. Each use extends it. */
  @Column(wholeNumber('expires_at'))
  expiresAt: number;
}

@Entity('usher_access_token')
@Index('usher_access_token_grant', ['grantId'])
@Index('usher_access_token_expiry', ['expiresAt'])
export class AccessToken {
  @PrimaryColumn(text('digest', DIGEST_LENGTH))
  digest: string;

  @Column(text('grant_id', OWN_ID_LENGTH))
  grantId: string;

  @Column(text('client_id', CLIENT_ID_LENGTH))
  clientId: string;

  @Column(wholeNumber('created_at'))
  createdAt: number;

  @Column(wholeNumber('expires_at'))
  expiresAt: number;
}
