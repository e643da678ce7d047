import { Entity, Index } from 'typeorm';
import { Account } from '../auth/sign-in/account.entity.js';
import { Session } from '../database/browser-session.entity.js';
import { DIGEST_LENGTH, NULLABLE, OWN_ID_LENGTH, PRIMARY, Text, WholeNumber } from '../database/columns.js';

export const MAX_OPERATOR_NAME_LENGTH = 64;

/** A viewer reads all pages of the console and changes nothing. */
export const OPERATOR_ROLES = ['viewer', 'operator'] as const;
export type OperatorRole = (typeof OPERATOR_ROLES)[number];

/** A person who signs in to the console, besides the one that the server's settings name. Never deleted: the audit names them. */
@Entity('usher_operator')
@Index('usher_operator_name', ['name'], { unique: true })
export class Operator extends Account {
  /** In lower case. */
  @Text(MAX_OPERATOR_NAME_LENGTH)
  name: string;

  @Text(16)
  role: OperatorRole;
}

/** An operator who is signed in with one browser. */
@Entity('usher_operator_session')
@Index('usher_operator_session_operator', ['operatorId'])
@Index('usher_operator_session_expiry', ['expiresAt'])
export class OperatorSession extends Session {
  /** Null for the operator of the settings. */
  @Text(OWN_ID_LENGTH, NULLABLE)
  operatorId: string | null;

  /**
   * HMAC of the user and password in the settings, with the session's token as key, so that changing them ends the session.
   * Null for other operators.
   */
  @Text(DIGEST_LENGTH, NULLABLE)
  settingsMac: string | null;
}

/** A form of the console that was sent. Each can be sent only once. */
@Entity('usher_used_form')
@Index('usher_used_form_expiry', ['expiresAt'])
export class UsedForm {
  @Text(DIGEST_LENGTH, PRIMARY)
  digest: string;

  /** When no such form can be sent any more. */
  @WholeNumber()
  expiresAt: number;
}
