import { Column, PrimaryColumn } from 'typeorm';
import { nullable, OWN_ID_LENGTH, text, wholeNumber } from '../../database/columns.js';

/** Somebody who signs in with a name and a password: a member or an operator. */
export abstract class Account {
  @PrimaryColumn(text('id', OWN_ID_LENGTH))
  id: string;

  /** In lower case. */
  abstract name: string;

  /** Argon2id, with its salt and its parameters. */
  @Column(text('password_hash', 255))
  passwordHash: string;

  @Column(wholeNumber('created_at'))
  createdAt: number;

  @Column(nullable(wholeNumber('disabled_at')))
  disabledAt: number | null;
}

/** The sign-in of an {@link Account} in one browser. */
export abstract class Session {
  /** SHA-256 of the session cookie. */
  @PrimaryColumn(text('digest', 43))
  digest: string;

  @Column(wholeNumber('created_at'))
  createdAt: number;

  /** Each use extends it, up to the absolute lifetime after `createdAt`. */
  @Column(wholeNumber('expires_at'))
  expiresAt: number;
}
