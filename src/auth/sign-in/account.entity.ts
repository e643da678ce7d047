import { NULLABLE, OWN_ID_LENGTH, PRIMARY, Text, WholeNumber } from '../../database/columns.js';

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
