import { DIGEST_LENGTH, NULLABLE, OWN_ID_LENGTH, PRIMARY, Text, WholeNumber } from '../../database/columns.js';

/** Somebody who signs in with a name and a password: a member or an operator. */
export abstract class Account {
  @Text(OWN_ID_LENGTH, PRIMARY)
  id: string;

  /** In lower case. */
  abstract name: string;

  /** Argon2id, with its salt and its parameters. */
  @Text(255)
  passwordHash: string;

  @WholeNumber()
  createdAt: number;

  @WholeNumber(NULLABLE)
  disabledAt: number | null;
}

/** The sign-in of an {@link Account} in one browser. */
export abstract class Session {
  /** SHA-256 of the session cookie. */
  @Text(DIGEST_LENGTH, PRIMARY)
  digest: string;

  @WholeNumber()
  createdAt: number;

  /** Each use extends it, up to the absolute lifetime after `createdAt`. */
  @WholeNumber()
  expiresAt: number;
}
