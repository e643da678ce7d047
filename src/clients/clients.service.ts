import { Inject, Injectable } from '@nestjs/common';
import type { DataSource, EntityManager, Repository } from 'typeorm';
import { AuditLog, type AuditChange } from '../audit/audit.module.js';
import { USHER_DATA_SOURCE } from '../database/data-source.js';
import { isDuplicate } from '../database/errors.js';
import { databaseNow, inTransaction } from '../database/sql.js';
import {
  conflict,
  type FieldError,
  fieldError,
  invalidFields,
  notFound,
  type Problem,
  unprocessable,
  validated,
} from '../http/problem.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../usher.options.js';
import { type Actor, SYSTEM } from '../values/actor.js';
import { emailFault } from '../values/email-address.js';
import { newId, requiredFlag } from '../values/identifier.js';
import { checkNotifyUrl, NotifyUrlError, type NotifyUrlPolicy } from '../values/urls/notify-url.js';
import { endOpenAuthorizations } from './authorization.entity.js';
import { ClientCredentials, CONTROL_CHARACTER, credentialFault, newCredentials } from './client-credentials.js';
import { Client, ClientSecret, MAX_CLIENT_NAME_LENGTH, NEXT_GENERATION, USUAL_GRANTS } from './client.entity.js';
import { addNotice, type NoticeKind, endPortalAccess, withdrawLinks } from './portal.entity.js';
import { Vault } from './secrets/vault.js';

const NAME = new RegExp(`^(?=.*\\S)[^\\p{Cc}\\p{Bidi_Control}]{1,${MAX_CLIENT_NAME_LENGTH}}$`, 'u');

export const unknownClient = (id: string): Problem =>
  notFound(`there is no client ${id}; "usher client list" shows all clients`);

/** Creates, changes and finds API clients. The operator issues their credentials (specification 5.1). */
@Injectable()
export class ClientsService {
  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    private readonly vault: Vault,
    private readonly audit: AuditLog,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {}

  /**
   * Creates a client. The returned secret is stored only encrypted, so show it to the operator now.
   * 422 for an invalid name, 400 for an invalid Notify URL.
   */
  create(name: string, notifyUrl: string | null = null, actor?: Actor): Promise<{ client: Client; secret: string }> {
    return this.add(name, notifyUrl, { ...newCredentials(), imported: false, actor });
  }

  /** Creates a client with credentials from another system. 400 or 422 if they are invalid, 409 if the id exists. */
  async import(name: string, notifyUrl: string | null, credentials: ClientCredentials, actor?: Actor): Promise<Client> {
    const fault = credentialFault(validated(ClientCredentials, Object(credentials)), this.options.environment);
    if (fault !== null) throw unprocessable(fault);
    return (await this.add(name, notifyUrl, { ...credentials, imported: true, actor })).client;
  }

  /** Changes the name, which only people see. 422 for an invalid name. */
  async rename(id: string, name: string, actor?: Actor): Promise<Client> {
    this.checkName(name);
    return this.change(id, { name }, { action: 'client.renamed', actor }, (client) => client.name);
  }

  /** All clients, the oldest first. */
  list(): Promise<Client[]> {
    return this.dataSource.manager.find(Client, { order: { createdAt: 'ASC', id: 'ASC' } });
  }

  /** 404 if there is no client with this id. */
  get(id: string): Promise<Client> {
    return getClient(this.dataSource.manager, id);
  }

  /** Null if there is no client with this id. */
  find(id: string): Promise<Client | null> {
    return findClient(this.dataSource.manager, id);
  }

  /**
   * A disabled client can neither authenticate nor use its tokens or its portal; its notifications are still sent. Disabling
   * also revokes its tokens, codes and links, so that enabling it again does not make them valid.
   */
  async setDisabled(id: string, disabled: boolean, actor?: Actor): Promise<Client> {
    if (!requiredFlag(disabled)) return this.change(id, { disabledAt: null }, { action: 'client.enabled', actor });
    const disabledAt = await databaseNow(this.dataSource.manager);
    return this.change(id, { disabledAt, ...NEXT_GENERATION }, { action: 'client.disabled', actor });
  }

  /** Revokes every token and code that the client has: in every process within 5 s, like a disabled client. */
  revokeTokens(id: string, actor?: Actor): Promise<Client> {
    return this.change(id, NEXT_GENERATION, { action: 'client.tokens-revoked', actor });
  }

  /** Sets where notifications without a Notify URL of their own go. 400 if deliveries to it would be rejected. */
  async setNotifyUrl(id: string, notifyUrl: string, actor?: Actor): Promise<Client> {
    this.checkNotifyUrl(notifyUrl);
    const audit = { action: 'client.notify-url-set', actor, detail: { host: new URL(notifyUrl).host } } as const;
    return this.change(id, { notifyUrl }, audit, (client) => client.notifyUrl, 'Notify URL');
  }

  /**
   * Sets the e-mail address that is told when a Notify URL of the client fails; null removes it. 422 for an invalid one. The
   * audit contains only its first letters, because audit events are kept longer than the client.
   */
  async setContact(id: string, contact: string | null, actor?: Actor): Promise<Client> {
    if (contact !== null) this.checkContact(contact);
    const audit = { action: 'client.contact-set', actor, detail: { isSet: contact !== null } } as const;
    return this.change(id, { contact }, audit, (client) => masked(client.contact), 'contact');
  }

  /** Throws 422 if a client cannot have this name. */
  checkName(name: string): void {
    if (typeof name === 'string' && NAME.test(name)) return;
    throw unprocessable(
      `the name is invalid; use 1 to ${MAX_CLIENT_NAME_LENGTH} characters on one line, without characters that change the direction of text`,
    );
  }

  /** Throws 422 if this is not an e-mail address. */
  checkContact(contact: string): void {
    const fault = emailFault(typeof contact === 'string' ? contact : '');
    if (fault !== null) throw unprocessable(`the contact ${fault}`);
  }

  /** Throws 400 if deliveries to this Notify URL would be rejected. */
  checkNotifyUrl(notifyUrl: string): void {
    const errors = this.notifyUrlErrors(typeof notifyUrl === 'string' ? notifyUrl : '');
    if (errors.length > 0) throw invalidFields(errors);
  }

  /**
   * Why deliveries to the field `notifyUrl` of a body would be rejected. Empty if they would be accepted, or if it is not a
   * string.
   */
  notifyUrlErrors(notifyUrl: unknown): FieldError[] {
    if (typeof notifyUrl !== 'string') return [];
    const { allowPrivateHosts, environment } = this.options;
    return notifyUrlErrors(notifyUrl, { allowPrivateHosts, httpsOnly: environment === 'production' });
  }

  /** Returns the client's Notify URL. Throws 422 if it has none. */
  async registeredNotifyUrl(id: string, manager = this.dataSource.manager): Promise<string> {
    const { notifyUrl } = await getClient(manager, id);
    if (notifyUrl !== null) return notifyUrl;
    throw notifyUrlMissing();
  }

  private async add(
    name: string,
    notifyUrl: string | null,
    { id, secret, imported, actor }: ClientCredentials & { imported: boolean; actor: Actor | undefined },
  ): Promise<{ client: Client; secret: string }> {
    this.checkName(name);
    if (notifyUrl !== null) this.checkNotifyUrl(notifyUrl);
    const client = await inTransaction(this.dataSource, async (manager) => {
      const createdAt = await databaseNow(manager);
      const added = manager.create(Client, {
        id,
        name,
        notifyUrl,
        contact: null,
        grantTypes: [...USUAL_GRANTS],
        createdAt,
        disabledAt: null,
        tokenGeneration: 0,
      });
      await manager.insert(Client, added);
      await manager.insert(ClientSecret, {
        id: newId(this.options.environment, createdAt),
        clientId: id,
        ...this.vault.seal(secret, id),
        createdAt,
        expiresAt: null,
        rotationKey: null,
      });
      const detail = { imported, ...(notifyUrl !== null && { to: notifyUrl }) };
      await this.audit.record({ action: 'client.created', subject: `client:${id}`, actor, detail }, manager);
      return added;
    }).catch((error: unknown) => {
      throw isDuplicate(error) ? conflict(`client ${id} already exists`) : error;
    });
    return { client, secret };
  }

  /**
   * `shown`: what the audit records of the client before and after the change. `notice`: the change of which the contact
   * before it is told.
   */
  private async change(
    id: string,
    change: Parameters<Repository<Client>['update']>[1],
    audit: AuditChange,
    shown?: (client: Client) => string | null,
    notice?: NoticeKind,
  ): Promise<Client> {
    await inTransaction(this.dataSource, async (manager) => {
      const before = await getClient(manager, id, 'pessimistic_write');
      await manager.update(Client, { id }, change);
      if ('tokenGeneration' in change) await endOpenAuthorizations(manager, { clientId: id });
      if (change.disabledAt) await endPortalAccess(manager, id);
      if ('contact' in change) await withdrawLinks(manager, { clientId: id, createdBy: SYSTEM.name });
      if (notice && before.contact)
        await addNotice(manager, this.options, { clientId: id, kind: notice, contact: before.contact });
      const values = shown && { from: shown(before), to: shown({ ...before, ...change } as Client) };
      const detail = { ...audit.detail, ...values };
      await this.audit.record({ subject: `client:${id}`, ...audit, detail }, manager);
    });
    return this.get(id);
  }
}

/** Null if there is no client with this id. A lock lasts until the transaction ends. */
export async function findClient(
  manager: EntityManager,
  id: string,
  lock?: 'pessimistic_write',
): Promise<Client | null> {
  // No id contains a control character, and Postgres refuses NUL.
  if (typeof id !== 'string' || CONTROL_CHARACTER.test(id)) return null;
  const client = await manager.findOne(Client, { where: { id }, lock: lock && { mode: lock } });
  // MySQL ignores trailing spaces when it compares ids.
  return client?.id === id ? client : null;
}

/** Like {@link findClient}, but 404 if there is none. */
export async function getClient(manager: EntityManager, id: string, lock?: 'pessimistic_write'): Promise<Client> {
  const client = await findClient(manager, id, lock);
  if (!client) throw unknownClient(id);
  return client;
}

/** The first letters of the parts of an e-mail address, and the last part: `a…@c….example`. */
const masked = (address: string | null): string | null =>
  address === null ? null : address.replace(/(?<=(^|@).)[^@]*?(?=@|\.[^.@]*$)/g, '…');

export const notifyUrlMissing = (): Problem =>
  unprocessable(
    'notifyUrl is missing and the client has no Notify URL; send notifyUrl, or set one with PUT /client/notify-url',
  );

/** Why the policy rejects a Notify URL, as errors of the field `notifyUrl`. */
export function notifyUrlErrors(notifyUrl: string, policy: NotifyUrlPolicy): FieldError[] {
  try {
    checkNotifyUrl(notifyUrl, policy);
    return [];
  } catch (error) {
    if (!(error instanceof NotifyUrlError)) throw error;
    return [fieldError('body', ['notifyUrl'], error.message)];
  }
}
