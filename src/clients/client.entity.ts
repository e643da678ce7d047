import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import {
  CLIENT_ID_LENGTH,
  int,
  longText,
  NOTIFY_URL_LENGTH,
  nullable,
  OWN_ID_LENGTH,
  text,
  wholeNumber,
} from '../database/columns.js';
import { MAX_EMAIL_LENGTH } from '../values/email-address.js';

export const GRANT_TYPES = ['client_credentials', 'refresh_token', 'authorization_code'] as const;
/** What a client may send as `grant_type`. */
export type GrantType = (typeof GRANT_TYPES)[number];

/** Stores a list as one text. */
const separatedBy = (separator: string) => ({
  to: (list: string[]) => list.join(separator),
  from: (stored: string) => stored.split(separator),
});

export const MAX_CLIENT_NAME_LENGTH = 200;

/** An API client. Its secrets are in a separate table, see {@link ClientSecret}. */
@Entity('usher_client')
export class Client {
  @PrimaryColumn(text('id', CLIENT_ID_LENGTH))
  id: string;

  @Column(text('name', MAX_CLIENT_NAME_LENGTH))
  name: string;

  @Column(nullable(text('notify_url', NOTIFY_URL_LENGTH)))
  notifyUrl: string | null;

  /** The e-mail address that is told when a Notify URL fails; null: nobody is told. */
  @Column(nullable(text('contact', MAX_EMAIL_LENGTH)))
  contact: string | null;

  @Column({ ...text('grant_types', 100), transformer: separatedBy(' ') })
  grantTypes: GrantType[];

  @Column(wholeNumber('created_at'))
  createdAt: number;

  @Column(nullable(wholeNumber('disabled_at')))
  disabledAt: number | null;

  /** A token carries the generation of its client at that time, and is valid only in this generation. */
  @Column(int('token_generation'))
  tokenGeneration: number;
}

/** The change of a {@link Client} that revokes all its tokens in one statement, however many they are. */
export const NEXT_GENERATION = { tokenGeneration: () => 'token_generation + 1' };

/** One encrypted secret of a client (vault.ts). During the overlap of a rotation a client has two. */
@Entity('usher_client_secret')
@Index('usher_client_secret_client', ['clientId'])
export class ClientSecret {
  @PrimaryColumn(text('id', OWN_ID_LENGTH))
  id: string;

  @Column(text('client_id', CLIENT_ID_LENGTH))
  clientId: string;

  @Column(text('key_id', 64))
  keyId: string;

  @Column(text('digest', 64))
  digest: string;

  @Column(longText('sealed'))
  sealed: string;

  @Column(wholeNumber('created_at'))
  createdAt: number;

  @Column(nullable(wholeNumber('expires_at')))
  expiresAt: number | null;

  /** The digest of the Idempotency-Key of the rotation that issued it, or null. */
  @Column(nullable(text('rotation_key', 43)))
  rotationKey: string | null;
}

/** What a client needs for the authorization-code grant. A table of its own, because no token request reads it. */
@Entity('usher_client_application')
export class ClientApplication {
  @PrimaryColumn(text('client_id', CLIENT_ID_LENGTH))
  clientId: string;

  /** Compared exactly, character by character. */
  @Column({ ...longText('redirect_uris'), transformer: separatedBy('\n') })
  redirectUris: string[];

  /** The operator vouches for it: resource owners are not asked for their consent. */
  @Column({ name: 'is_trusted', type: 'boolean' })
  isTrusted: boolean;
}
