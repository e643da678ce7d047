import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { OWN_ID_LENGTH, text, wholeNumber } from '../database/columns.js';

export const MAX_OPERATOR_NAME_LENGTH = 64;

/** A viewer reads all pages of the console and changes nothing. */
export const OPERATOR_ROLES = ['viewer', 'operator'] as const;
export type OperatorRole = (typeof OPERATOR_ROLES)[number];

/** A person who signs in to the console, besides the one that the server's settings name. Never deleted: the audit names them. */
@Entity('usher_operator')
@Index('usher_operator_name', ['name'], { unique: true })
export class Operator {
  @PrimaryColumn(text('id', OWN_ID_LENGTH))
  id: string;

  /** In lower case. */
  @Column(text('name', MAX_OPERATOR_NAME_LENGTH))
  name: string;

  /** Argon2id, with its salt and its parameters. */
  @Column(text('password_hash', 255))
  passwordHash: string;

  @Column(text('role', 16))
  role: OperatorRole;

  @Column(wholeNumber('created_at'))
  createdAt: number;

  @Column({ ...wholeNumber('disabled_at'), nullable: true })
  disabledAt: number | null;
}

/** An operator who is signed in with one browser. */
@Entity('usher_operator_session')
@Index('usher_operator_session_operator', ['operatorId'])
@Index('usher_operator_session_expiry', ['expiresAt'])
export class OperatorSession {
  /** SHA-256 of the session cookie. */
  @PrimaryColumn(text('digest', 43))
  digest: string;

  /** Null for the operator of the settings. */
  @Column({ ...text('operator_id', OWN_ID_LENGTH), nullable: true })
  operatorId: string | null;

  /**
   * HMAC of the user and password in the settings, with the session's token as key, so that changing them ends the session.
   * Null for other operators.
   */
  @Column({ ...text('settings_mac', 43), nullable: true })
  settingsMac: string | null;

  @Column(wholeNumber('created_at'))
  createdAt: number;

  /** Each use extends it, up to the absolute lifetime after `createdAt`. */
  @Column(wholeNumber('expires_at'))
  expiresAt: number;
}
