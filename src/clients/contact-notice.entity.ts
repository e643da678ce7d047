import { type EntityManager, Entity, Index } from 'typeorm';
import { CLIENT_ID_LENGTH, NULLABLE, OWN_ID_LENGTH, PRIMARY, Text, WholeNumber } from '../database/columns.js';
import { databaseNow } from '../database/sql.js';
import { MAX_EMAIL_LENGTH } from '../values/email-address.js';
import { newId } from '../values/identifier.js';
import type { ResolvedOptions } from '../usher.options.js';

/** A link to the portal was asked for, or the named setting was changed. */
export type NoticeKind = 'link' | 'contact' | 'Notify URL' | 'secret';

/** A message to the contact of a client that a worker will send. */
@Entity('usher_contact_notice')
@Index('usher_contact_notice_not_before', ['notBefore'])
@Index('usher_contact_notice_created_at', ['createdAt'])
export class ContactNotice {
  @Text(OWN_ID_LENGTH, PRIMARY)
  id: string;

  /** A request for a link has what was typed, so there may be no such client. */
  @Text(CLIENT_ID_LENGTH)
  clientId: string;

  @Text(16)
  kind: NoticeKind;

  /** The contact as it was before a change; null: as it is. */
  @Text(MAX_EMAIL_LENGTH, NULLABLE)
  contact: string | null;

  @WholeNumber()
  createdAt: number;

  /** A worker that sends it moves this on first, so that no other one sends it too. */
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
