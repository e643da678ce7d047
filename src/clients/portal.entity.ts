import { type EntityManager, Entity, type FindOptionsWhere, Index, IsNull, Not } from 'typeorm';
import { Session } from '../database/browser-session.entity.js';
import {
  CLIENT_ID_LENGTH,
  DIGEST_LENGTH,
  Flag,
  NULLABLE,
  OWN_ID_LENGTH,
  PRIMARY,
  Text,
  WholeNumber,
} from '../database/columns.js';
import { databaseNow } from '../database/sql.js';
import type { ResolvedOptions } from '../usher.options.js';
import { MAX_ACTOR_ADDRESS_LENGTH, MAX_ACTOR_LENGTH } from '../values/actor.js';
import { MAX_EMAIL_LENGTH } from '../values/email-address.js';
import { newId } from '../values/identifier.js';

/** A link to the portal of a client. It is valid for one sign-in, until it expires or is withdrawn. */
@Entity('usher_portal_link')
@Index('usher_portal_link_client_id', ['clientId'])
@Index('usher_portal_link_digest', ['digest'], { unique: true })
@Index('usher_portal_link_expires_at', ['expiresAt'])
export class PortalLink {
  @Text(OWN_ID_LENGTH, PRIMARY)
  id: string;

  @Text(CLIENT_ID_LENGTH)
  clientId: string;

  /** SHA-256 of the token in the link. */
  @Text(DIGEST_LENGTH)
  digest: string;

  /** Whether the person who opens it may change something. */
  @Flag()
  mayChange: boolean;

  /** The secret that it shows; null: none. */
  @Text(OWN_ID_LENGTH, NULLABLE)
  secretId: string | null;

  @Text(MAX_ACTOR_LENGTH)
  createdBy: string;

  @WholeNumber()
  createdAt: number;

  @WholeNumber()
  expiresAt: number;

  @WholeNumber(NULLABLE)
  openedAt: number | null;

  /** The address from which it was opened. */
  @Text(MAX_ACTOR_ADDRESS_LENGTH, NULLABLE)
  openedFrom: string | null;

  @WholeNumber(NULLABLE)
  withdrawnAt: number | null;
}

/** Somebody who opened a {@link PortalLink} in one browser. */
@Entity('usher_portal_session')
@Index('usher_portal_session_client_id', ['clientId'])
@Index('usher_portal_session_expires_at', ['expiresAt'])
export class PortalSession extends Session {
  @Text(CLIENT_ID_LENGTH)
  clientId: string;

  @Text(OWN_ID_LENGTH)
  linkId: string;

  @Flag()
  mayChange: boolean;
}

/** Ends the sessions of a client except the kept one, and withdraws its links that nobody has opened. */
export async function endPortalAccess(manager: EntityManager, clientId: string, keptSession = ''): Promise<void> {
  await manager.delete(PortalSession, { clientId, digest: Not(keptSession) });
  await withdrawLinks(manager, { clientId });
}

/** Withdraws the links that match and that nobody has opened. The links to the contact are created by the system. */
export async function withdrawLinks(manager: EntityManager, which: FindOptionsWhere<PortalLink>): Promise<void> {
  const unopened = { ...which, openedAt: IsNull(), withdrawnAt: IsNull() };
  await manager.update(PortalLink, unopened, { withdrawnAt: await databaseNow(manager) });
}

/** A link to the portal was asked for, or the named setting was changed. */
export type NoticeKind = 'link' | 'contact' | 'Notify URL' | 'secret';

/** A message to the contact of a client that a worker will send. */
@Entity('usher_contact_notice')
@Index('usher_contact_notice_not_before', ['notBefore'])
@Index('usher_contact_notice_created_at', ['createdAt'])
export class ContactNotice {
  @Text(OWN_ID_LENGTH, PRIMARY)
  id: string;

  /** For a request for a link this is what somebody typed, so the client may not exist. */
  @Text(CLIENT_ID_LENGTH)
  clientId: string;

  @Text(16)
  kind: NoticeKind;

  /** The contact before the change; null: the present contact. */
  @Text(MAX_EMAIL_LENGTH, NULLABLE)
  contact: string | null;

  @WholeNumber()
  createdAt: number;

  /** A worker that sends it first sets a later time here, so that no other worker sends it too. */
  @WholeNumber()
  notBefore: number;
}

/** Puts a message into the outbox, if messages to contacts are switched on. */
export async function addNotice(
  manager: EntityManager,
  { environment, contactMessages }: ResolvedOptions,
  notice: Pick<ContactNotice, 'clientId' | 'kind' | 'contact'>,
): Promise<void> {
  if (contactMessages === null) return;
  const now = await databaseNow(manager);
  await manager.insert(ContactNotice, { ...notice, id: newId(environment, now), createdAt: now, notBefore: now });
}
