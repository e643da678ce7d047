import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { OWN_ID_LENGTH, text, wholeNumber } from '../database/columns.js';

export const MAX_MEMBER_NAME_LENGTH = 191;

/** A member of the cinema, where the application has no members of its own. */
@Entity('usher_member')
@Index('usher_member_name', ['name'], { unique: true })
export class Member {
  /** The resource owner's id. */
  @PrimaryColumn(text('id', OWN_ID_LENGTH))
  id: string;

  /** What the member signs in with, in lower case. */
  @Column(text('name', MAX_MEMBER_NAME_LENGTH))
  name: string;

  /** Argon2id, with its salt and its parameters. */
  @Column(text('password_hash', 255))
  passwordHash: string;

  @Column(wholeNumber('created_at'))
  createdAt: number;

  @Column({ ...wholeNumber('disabled_at'), nullable: true })
  disabledAt: number | null;
}

/** A member who is signed in with one browser. */
@Entity('usher_member_session')
@Index('usher_member_session_member', ['memberId'])
@Index('usher_member_session_expiry', ['expiresAt'])
export class MemberSession {
  /** SHA-256 of the session cookie. */
  @PrimaryColumn(text('digest', 43))
  digest: string;

  @Column(text('member_id', OWN_ID_LENGTH))
  memberId: string;

  @Column(wholeNumber('created_at'))
  createdAt: number;

  /** Each use extends it, up to the absolute lifetime after `createdAt`. */
  @Column(wholeNumber('expires_at'))
  expiresAt: number;
}
