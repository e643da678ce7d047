import { getDataSourceToken } from '@nestjs/typeorm';
import type { DataSource } from 'typeorm';
import { createLogger } from '../../src/server/logger.js';
import { migrate, type Migrated } from '../../src/server/migrate.js';
import { type Running, serve } from '../../src/server/serve.js';
import { loadConfig } from '../../src/server/settings/settings.js';
import { Webhook, WebhookAttempt } from '../../src/webhooks/webhook.entity.js';
import { WebhookService } from '../../src/webhooks/webhook.service.js';
import { fieldsOf, type PageAnswer, TestBrowser } from '../auth/authorize/support.js';
import { Api, basic } from '../fixtures/0.2.0/api.js';
import type { Facts, KnownClient, KnownPerson } from '../fixtures/0.2.0/facts.js';
import { eventually } from './eventually.js';
import { freePort } from './ports.js';
import { TestReceiver } from './receiver.js';
import { loadReleased, type ReleasedDatabase } from './released-database.js';
import { SHORT_TIMES } from './usher.js';

/** Usher in this process, on a database that version 0.2.0 has left and this version has migrated. */
export class UpgradedServer {
  readonly api: Api;

  private constructor(
    readonly released: ReleasedDatabase,
    readonly migrated: Migrated,
    private readonly running: Running,
    readonly receiver: TestReceiver,
  ) {
    this.api = new Api(running.url);
  }

  /** The receiver refuses what the fixture calls hopeless. */
  static async start(): Promise<UpgradedServer> {
    const receiver = await TestReceiver.start('0.0.0.0');
    const released = await loadReleased(Number(new URL(receiver.url).port));
    const hopeless = released.facts.cases.interrupted.filter((one) => one.hopeless).map(({ key }) => key);
    receiver.behaviour = (response, { key }) => void response.writeHead(hopeless.includes(key) ? 500 : 200).end();
    const migrated = await migrate(loadConfig(released.settings));
    const port = String(await freePort());
    const config = loadConfig({
      ...SHORT_TIMES,
      // BullMQ gives the job of a killed worker to another one after a time that depends on it.
      WEBHOOK_TIMEOUT: '10s',
      LOG_LEVEL: process.env.TEST_LOG ?? 'silent',
      PORT: port,
      USHER_AUTH_URL: `http://127.0.0.1:${port}`,
      ...released.settings,
    });
    return new UpgradedServer(released, migrated, await serve(config, await createLogger(config)), receiver);
  }

  async stop(): Promise<void> {
    await this.running.app.close();
    this.receiver.close();
    await this.released.drop();
  }

  get facts(): Facts {
    return this.released.facts;
  }

  get dataSource(): DataSource {
    return this.running.app.get<DataSource>(getDataSourceToken('usher'), { strict: false });
  }

  service<T>(type: abstract new (...args: never[]) => T): T {
    return this.running.app.get(type as never, { strict: false });
  }

  get(path: string, authorization: string): Promise<Response> {
    return fetch(this.api.url + path, { headers: { authorization } });
  }

  async tokenStatus(token: string): Promise<number> {
    return (await this.get('/movie-orders?limit=1', `Bearer ${token}`)).status;
  }

  async secretStatus(client: KnownClient): Promise<number> {
    return (await this.get('/client', basic(client))).status;
  }

  /** Waits until the newest webhook of an order has this status. */
  webhook(key: string, status: Webhook['status']): Promise<Webhook> {
    return eventually(`the notification of ${key} is ${status}`, async () => {
      const where = { referenceId: key };
      const [newest] = await this.dataSource.manager.find(Webhook, { where, order: { id: 'DESC' }, take: 1 });
      return newest?.status === status ? newest : null;
    });
  }

  attemptsOf({ id }: Webhook): Promise<WebhookAttempt[]> {
    return this.dataSource.manager.find(WebhookAttempt, { where: { webhookId: id }, order: { number: 'ASC' } });
  }

  /** Notifies of this reference, and tells whether that made a new notification. */
  async notify(referenceId: string): Promise<boolean> {
    const request = { referenceId, clientId: this.facts.clients.shop.id, data: { key: referenceId } };
    return (await this.service(WebhookService).notify(request)).isNew;
  }

  /** The browser in which this person has signed in. */
  browserOf({ cookies }: KnownPerson): TestBrowser {
    const browser = new TestBrowser(this.api.url);
    for (const [name, value] of cookies) browser.cookies.set(name, value);
    return browser;
  }

  async signInAtConsole({ name, password }: KnownPerson): Promise<PageAnswer> {
    const browser = new TestBrowser(this.api.url);
    const { form = '' } = fieldsOf((await browser.get('/ops/sign-in')).text);
    const fields = { form, name, password, return_to: '/ops' };
    return browser.post('/ops/sign-in', fields, { 'sec-fetch-site': 'same-origin' });
  }

  signInAsMember({ name, password }: KnownPerson): Promise<PageAnswer> {
    return new TestBrowser(this.api.url).signIn(name, '/auth/sign-in', password);
  }
}
