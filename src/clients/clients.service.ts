import { Inject, Injectable } from '@nestjs/common';
import { type DataSource, Repository } from 'typeorm';
import { AuditLog } from '../audit/audit.module.js';
import { USHER_DATA_SOURCE } from '../database/data-source.js';
import { databaseNow, inTransaction, isDuplicate } from '../database/sql.js';
import { Problem, unprocessable } from '../http/problem.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../usher.options.js';
import { newId } from '../values/identifier.js';
import { checkNotifyUrl, NotifyUrlError } from '../values/notify-url.js';
import { type ClientCredentials, credentialFault, newCredentials } from './client-credentials.js';
import { ClientError, UnknownClientError } from './client-error.js';
import { Client, MAX_CLIENT_NAME_LENGTH, ClientSecret } from './client.entity.js';
import { Vault } from './secrets/vault.js';

const NAME = new RegExp(`^(?=.*\\S)\\P{Cc}{1,${MAX_CLIENT_NAME_LENGTH}}$`, 'u');

/** Creates, changes and finds API clients. The operator issues their credentials (specification 5.1). */
@Injectable()
export class ClientsService {
  private readonly clients: Repository<Client>;

  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    private readonly vault: Vault,
    private readonly audit: AuditLog,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {
    this.clients = dataSource.getRepository(Client);
  }

  /** Creates a client. The returned secret is stored only encrypted, so show it to the operator now. */
  create(name: string, notifyUrl: string | null): Promise<{ client: Client; secret: string }> {
    return this.add(name, notifyUrl, newCredentials());
  }

  /** Creates a client with credentials from another system. Throws {@link ClientError} if they are invalid. */
  async import(name: string, notifyUrl: string | null, credentials: ClientCredentials): Promise<Client> {
    const fault = credentialFault(credentials);
    if (fault !== null) throw new ClientError(fault);
    return (await this.add(name, notifyUrl, credentials)).client;
  }

  list(): Promise<Client[]> {
    return this.clients.find({ order: { createdAt: 'ASC', id: 'ASC' } });
  }

  async get(id: string): Promise<Client> {
    const client = await this.clients.findOneBy({ id });
    // MySQL ignores trailing spaces when it compares ids.
    if (client?.id !== id) throw new UnknownClientError(id);
    return client;
  }

  async setDisabled(id: string, disabled: boolean): Promise<Client> {
    const disabledAt = disabled ? await databaseNow(this.clients.manager) : null;
    const client = await this.change(id, { disabledAt });
    this.audit.record(disabled ? 'client.disabled' : 'client.enabled', { client: id });
    return client;
  }

  async setNotifyUrl(id: string, notifyUrl: string): Promise<Client> {
    this.checkNotifyUrl(notifyUrl);
    const client = await this.change(id, { notifyUrl });
    this.audit.record('client.notify-url-set', { client: id, host: new URL(notifyUrl).host });
    return client;
  }

  /** Throws {@link NotifyUrlError} if deliveries to this Notify URL would be rejected. */
  checkNotifyUrl(url: string): void {
    const { allowPrivateHosts, environment } = this.options;
    checkNotifyUrl(url, { allowPrivateHosts, httpsOnly: environment === 'production' });
  }

  /** The same check for the notifyUrl field of a request: answers 400. */
  checkNotifyUrlField(notifyUrl: string): void {
    try {
      this.checkNotifyUrl(notifyUrl);
    } catch (error) {
      if (!(error instanceof NotifyUrlError)) throw error;
      const { message } = error;
      throw new Problem(400, 'Bad Request', `notifyUrl: ${message}`, [{ field: 'notifyUrl', message }]);
    }
  }

  /** Returns the client's Notify URL. Throws 422 if it has none. */
  async registeredNotifyUrl(id: string): Promise<string> {
    const { notifyUrl } = await this.get(id);
    if (notifyUrl !== null) return notifyUrl;
    throw unprocessable(
      'notifyUrl is missing and the client has no Notify URL; send notifyUrl or ask the operator to set one',
    );
  }

  private async add(name: string, notifyUrl: string | null, { id, secret }: ClientCredentials) {
    if (!NAME.test(name))
      throw new ClientError(`the name is invalid; use 1 to ${MAX_CLIENT_NAME_LENGTH} characters on one line`);
    if (notifyUrl !== null) this.checkNotifyUrl(notifyUrl);
    const client = await this.insert({ id, name, notifyUrl }, secret).catch((error: unknown) => {
      throw isDuplicate(error) ? new ClientError(`client ${id} already exists`) : error;
    });
    this.audit.record('client.created', { client: id });
    return { client, secret };
  }

  private insert(row: Pick<Client, 'id' | 'name' | 'notifyUrl'>, secret: string): Promise<Client> {
    return inTransaction(this.dataSource, async (manager) => {
      const createdAt = await databaseNow(manager);
      const client = manager.create(Client, {
        ...row,
        grantTypes: ['client_credentials', 'refresh_token'],
        createdAt,
        disabledAt: null,
      });
      await manager.insert(Client, client);
      const id = newId(this.options.environment, createdAt);
      const sealed = this.vault.seal(secret, client.id);
      await manager.insert(ClientSecret, { id, clientId: client.id, ...sealed, createdAt, expiresAt: null });
      return client;
    });
  }

  private async change(id: string, change: Partial<Client>): Promise<Client> {
    await this.get(id);
    await this.clients.update({ id }, change);
    return this.get(id);
  }
}
