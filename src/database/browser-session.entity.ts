import { DIGEST_LENGTH, PRIMARY, Text, WholeNumber } from './columns.js';

/** The sign-in of somebody in one browser. */
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
