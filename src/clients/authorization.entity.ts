import { Entity, type EntityManager, type FindOptionsWhere, Index, IsNull } from 'typeorm';
import {
  CLIENT_ID_LENGTH,
  DIGEST_LENGTH,
  LongText,
  NULLABLE,
  OWN_ID_LENGTH,
  OWNER_ID_LENGTH,
  PRIMARY,
  Text,
  WholeNumber,
} from '../database/columns.js';
import { MAX_REDIRECT_URI_LENGTH } from './redirect-uri.js';

/**
 * One authorisation request: asked on the consent page, then allowed (it has a code), then used (it has a grant). Each step
 * is one conditional update, so each happens once.
 */
@Entity('usher_authorization')
@Index('usher_authorization_code', ['codeDigest'], { unique: true })
@Index('usher_authorization_owner', ['ownerId'])
@Index('usher_authorization_expiry', ['expiresAt'])
export class Authorization {
  /** SHA-256 of the token in the consent form. */
  @Text(DIGEST_LENGTH, PRIMARY)
  formDigest: string;

  /** SHA-256 of the form cookie: only the browser that got the page can send its form. */
  @Text(DIGEST_LENGTH)
  browserDigest: string;

  @Text(CLIENT_ID_LENGTH)
  clientId: string;

  @Text(OWNER_ID_LENGTH)
  ownerId: string;

  @Text(MAX_REDIRECT_URI_LENGTH)
  redirectUri: string;

  @LongText(NULLABLE)
  state: string | null;

  /** The S256 challenge (RFC 7636). */
  @Text(DIGEST_LENGTH)
  codeChallenge: string;

  @Text(DIGEST_LENGTH, NULLABLE)
  codeDigest: string | null;

  /** What the code was exchanged for; null before that, and after it was revoked. */
  @Text(OWN_ID_LENGTH, NULLABLE)
  grantId: string | null;

  @WholeNumber(NULLABLE)
  usedAt: number | null;

  @WholeNumber()
  createdAt: number;

  /** The expiry of the form, later that of the code. */
  @WholeNumber()
  expiresAt: number;
}

/** Ends forms and codes that nobody has used. A used code is kept, because it is needed to notice its replay. */
export async function endOpenAuthorizations(
  manager: EntityManager,
  which: FindOptionsWhere<Authorization>,
): Promise<void> {
  await manager.delete(Authorization, { ...which, usedAt: IsNull() });
}

/** A resource owner allowed an application to act for them. The row is deleted when the owner withdraws the consent. */
@Entity('usher_consent')
@Index('usher_consent_client', ['clientId', 'givenAt'])
export class Consent {
  @Text(OWNER_ID_LENGTH, PRIMARY)
  ownerId: string;

  @Text(CLIENT_ID_LENGTH, PRIMARY)
  clientId: string;

  /** When it was last given; for an application that the operator trusts, when it was last recorded in the audit. */
  @WholeNumber()
  givenAt: number;
}
