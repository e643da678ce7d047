import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import {
  CLIENT_ID_LENGTH,
  longText,
  nullable,
  OWN_ID_LENGTH,
  OWNER_ID_LENGTH,
  text,
  wholeNumber,
} from '../../database/columns.js';
import { MAX_REDIRECT_URI_LENGTH } from '../../clients/redirect-uri.js';

const DIGEST_LENGTH = 43;

/**
 * One authorization request: asked on the consent page, then allowed (it has a code), then used (it has a grant). Each step
 * is one conditional update, so each happens once.
 */
@Entity('usher_authorization')
@Index('usher_authorization_code', ['codeDigest'], { unique: true })
@Index('usher_authorization_owner', ['ownerId'])
@Index('usher_authorization_expiry', ['expiresAt'])
export class Authorization {
  /** SHA-256 of the token in the consent form. */
  @PrimaryColumn(text('form_digest', DIGEST_LENGTH))
  formDigest: string;

  /** SHA-256 of the form cookie: only the browser that got the page can send its form. */
  @Column(text('browser_digest', DIGEST_LENGTH))
  browserDigest: string;

  @Column(text('client_id', CLIENT_ID_LENGTH))
  clientId: string;

  @Column(text('owner_id', OWNER_ID_LENGTH))
  ownerId: string;

  @Column(text('redirect_uri', MAX_REDIRECT_URI_LENGTH))
  redirectUri: string;

  @Column(nullable(longText('state')))
  state: string | null;

  /** The S256 challenge (RFC 7636). */
  @Column(text('code_challenge', DIGEST_LENGTH))
  codeChallenge: string;

  @Column(nullable(text('code_digest', DIGEST_LENGTH)))
  codeDigest: string | null;

  /** What the code was exchanged for; null before that, and after it was revoked. */
  @Column(nullable(text('grant_id', OWN_ID_LENGTH)))
  grantId: string | null;

  @Column(nullable(wholeNumber('used_at')))
  usedAt: number | null;

  @Column(wholeNumber('created_at'))
  createdAt: number;

  /** Of the form, then of the code. */
  @Column(wholeNumber('expires_at'))
  expiresAt: number;
}

/** A resource owner allowed an application to act for them. The row goes when the owner withdraws it. */
@Entity('usher_consent')
export class Consent {
  @PrimaryColumn(text('owner_id', OWNER_ID_LENGTH))
  ownerId: string;

  @PrimaryColumn(text('client_id', CLIENT_ID_LENGTH))
  clientId: string;

  /** When it was last given. */
  @Column(wholeNumber('given_at'))
  givenAt: number;
}
