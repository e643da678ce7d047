import { Entity, Index } from 'typeorm';
import { Account } from '../auth/sign-in/account.entity.js';
import { Session } from '../database/browser-session.entity.js';
import { OWN_ID_LENGTH, Text } from '../database/columns.js';

export const MAX_MEMBER_NAME_LENGTH = 191;

/** A member of the cinema, where the application has no members of its own. The id is that of the resource owner. */
@Entity('usher_member')
@Index('usher_member_name', ['name'], { unique: true })
export class Member extends Account {
  /** What the member signs in with, in lower case. */
  @Text(MAX_MEMBER_NAME_LENGTH)
  name: string;
}

/** A member who is signed in with one browser. */
@Entity('usher_member_session')
@Index('usher_member_session_member', ['memberId'])
@Index('usher_member_session_expiry', ['expiresAt'])
export class MemberSession extends Session {
  @Text(OWN_ID_LENGTH)
  memberId: string;
}
