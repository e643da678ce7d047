import { Entity, Index } from 'typeorm';
import {
  CLIENT_ID_LENGTH,
  DIGEST_LENGTH,
  Flag,
  Int,
  LongText,
  NOTIFY_URL_LENGTH,
  NULLABLE,
  OWN_ID_LENGTH,
  PRIMARY,
  separatedBy,
  Text,
  WholeNumber,
} from '../database/columns.js';
import { MAX_EMAIL_LENGTH } from '../values/email-address.js';

export const GRANT_TYPES = ['client_credentials', 'refresh_token', 'authorization_code'] as const;
/** What a client may send as `grant_type`. */
export type GrantType = (typeof GRANT_TYPES)[number];
/** The grants of a new client. */
export const USUAL_GRANTS: readonly GrantType[] = ['client_credentials', 'refresh_token'];

export const MAX_CLIENT_NAME_LENGTH = 200;

/** An API client. Its secrets are in a separate table, see {@link ClientSecret}. */
@Entity('usher_client')
export class Client {
  @Text(CLIENT_ID_LENGTH, PRIMARY)
  id: string;

  @Text(MAX_CLIENT_NAME_LENGTH)
  name: string;

  @Text(NOTIFY_URL_LENGTH, NULLABLE)
  notifyUrl: string | null;

  /** The e-mail address that is told when a Notify URL fails; null: nobody is told. */
  @Text(MAX_EMAIL_LENGTH, NULLABLE)
  contact: string | null;

  @Text(100, { transformer: separatedBy(' ') })
  grantTypes: GrantType[];

  @WholeNumber()
  createdAt: number;

  @WholeNumber(NULLABLE)
  disabledAt: number | null;

  /** A token contains the generation of its client, and is valid only while the client has the same one. */
  @Int()
  tokenGeneration: number;
}

/** The change of a {@link Client} that revokes all its tokens in one statement, however many they are. */
export const NEXT_GENERATION = { tokenGeneration: () => 'token_generation + 1' };

/** One encrypted secret of a client (vault.ts). During the overlap of a rotation a client has two. */
@Entity('usher_client_secret')
@Index('usher_client_secret_client', ['clientId'])
export class ClientSecret {
  @Text(OWN_ID_LENGTH, PRIMARY)
  id: string;

  @Text(CLIENT_ID_LENGTH)
  clientId: string;

  @Text(64)
  keyId: string;

  /** {@link LEAKED} after a leak. */
  @Text(64)
  digest: string;

  @LongText()
  sealed: string;

  @WholeNumber()
  createdAt: number;

  @WholeNumber(NULLABLE)
  expiresAt: number | null;

  /** The digest of the Idempotency-Key of the rotation that issued it, or null. */
  @Text(DIGEST_LENGTH, NULLABLE)
  rotationKey: string | null;
}

/**
 * The digest of a secret that has leaked. It matches no secret, so the row authenticates nobody. The secret signs until it
 * expires.
 */
export const LEAKED = '';

/** What a client needs for the authorisation-code grant. A table of its own, because no token request reads it. */
@Entity('usher_client_application')
export class ClientApplication {
  @Text(CLIENT_ID_LENGTH, PRIMARY)
  clientId: string;

  /** Compared exactly, character by character. */
  @LongText({ transformer: separatedBy('\n') })
  redirectUris: string[];

  /** The operator vouches for it: resource owners are not asked for their consent. */
  @Flag()
  isTrusted: boolean;
}
