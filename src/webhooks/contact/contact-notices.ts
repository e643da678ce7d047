import { type DataSource, LessThanOrEqual } from 'typeorm';
import { findClient } from '../../clients/clients.service.js';
import { ContactNotice } from '../../clients/portal.entity.js';
import { databaseNow } from '../../database/sql.js';
import type { PortalLinks } from '../../portal/portal.js';
import { SYSTEM } from '../../values/actor.js';
import type { ContactMessage } from '../../values/contact-messenger.js';
import type { Environment } from '../../values/identifier.js';
import { time } from '../webhook-view.js';

/** Longer than sending takes. A message that was not sent is tried again after this time, for a day. */
export const NOTICE_LEASE_MS = 120_000;
/** The others follow in the next run. */
const MAX_NOTICES = 100;
const LINK_VALID_MS = 3_600_000;

/** Takes the notices that are due one by one, a refused one after the others. No other process sends one meanwhile. */
export async function* takeNotices({ manager }: DataSource): AsyncGenerator<ContactNotice> {
  const where = { notBefore: LessThanOrEqual(await databaseNow(manager)) };
  for (const notice of await manager.find(ContactNotice, { where, order: { notBefore: 'ASC' }, take: MAX_NOTICES })) {
    const { id, notBefore } = notice;
    const lease = { notBefore: (await databaseNow(manager)) + NOTICE_LEASE_MS };
    if ((await manager.update(ContactNotice, { id, notBefore }, lease)).affected === 1) yield notice;
  }
}

/** Null if the client does not exist or has no contact, or if it is disabled and asked for a link. */
export async function noticeMessage(
  { manager }: DataSource,
  links: PortalLinks,
  environment: Environment,
  { id, clientId, kind, contact, createdAt }: ContactNotice,
): Promise<ContactMessage | null> {
  const client = await findClient(manager, clientId);
  const told = contact ?? client?.contact;
  if (!client || !told) return null;
  const message = { id, clientId, clientName: client.name, contact: told, hosts: [] };
  const about = `the client "${client.name}" (${clientId})`;
  if (kind !== 'link')
    return {
      ...message,
      subject: `[Usher ${environment}] The ${kind} of a client was changed`,
      text: `The ${kind} of ${about} was changed at ${time(createdAt)}.\n\nIf you do not know of it, tell the operator at once.\n`,
    };
  if (client.disabledAt !== null) return null;
  const { url } = await links.create(clientId, { mayChange: true, validMs: LINK_VALID_MS, actor: SYSTEM });
  // Read after the link was made, because a later change of the contact withdraws the link.
  const present = (await findClient(manager, clientId))?.contact;
  if (!present) return null;
  return {
    ...message,
    contact: present,
    subject: `[Usher ${environment}] Your link to the portal`,
    text: `This link opens the portal of ${about} once, within an hour:\n\n${url}\n\nIf you did not ask for it, ignore it.\n`,
  };
}
