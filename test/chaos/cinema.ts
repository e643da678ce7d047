import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DynamicModule, INestApplicationContext } from '@nestjs/common';
import type * as Usher from '../../src/index.js';
import type { OwnRedis } from '../support/own-redis.js';
import { Random } from '../support/random.js';
import { Fleet } from './fleet.js';
import { freePort } from '../support/ports.js';
import { prepareRedis } from './redis.js';
import { OwnMariadb } from './services.js';

/** The built code, because tsx omits the metadata that dependency injection needs; and Nest as that code loads it. */
const require = createRequire(import.meta.url);
const { NestFactory } = require('@nestjs/core') as typeof import('@nestjs/core');
const usher = require('../../dist/index.js') as typeof Usher;
const { migrate } = require('../../dist/server/migrate.js') as typeof import('../../src/server/migrate.js');
const { loadConfig } =
  require('../../dist/server/settings/settings.js') as typeof import('../../src/server/settings/settings.js');

const ORDER = { currencyCode: 'MYR', totalAmount: 4200, bookingAmount: 200, payableAmount: 4300 };
const COMPLETION = { bookingId: 'BK-1', transactionId: 'TX-1' };
const CONCURRENCY = 32;

/** An order service in this process and one worker in another, on a MariaDB and a Redis of this run. */
export class Cinema {
  private constructor(
    private readonly folder: string,
    readonly redis: OwnRedis,
    readonly mariadb: OwnMariadb,
    private readonly worker: Fleet,
    private readonly app: INestApplicationContext,
    /** The client of all orders that are not given another one. */
    private readonly client: Usher.Client,
  ) {}

  static async open(times: Record<string, string>): Promise<Cinema> {
    const folder = mkdtempSync(join(tmpdir(), 'usher-cinema-'));
    const [redis, mariadb] = [await prepareRedis(folder), await OwnMariadb.prepare(folder)];
    await Promise.all([redis.start(), mariadb.start()]);
    await mariadb.createDatabase();
    const settings = { ...times, ...settingsOf(redis, mariadb) };
    await migrate(loadConfig(settings));
    const worker = new Fleet(folder, settings, Random.of(1, 'fleet'));
    worker.add('worker', 'worker', await freePort());
    await worker.start();
    const app = await NestFactory.createApplicationContext(orderService(settings), {
      logger: false,
      abortOnError: false,
    });
    return new Cinema(folder, redis, mariadb, worker, app, await createClient(app));
  }

  anotherClient(): Promise<Usher.Client> {
    return createClient(this.app);
  }

  /** Creates orders and returns their keys. The Notify URL of the nth is `urlOf(n)`. */
  async createOrders(count: number, urlOf: (n: number) => string, client = this.client): Promise<string[]> {
    const service = this.app.get(usher.OrdersService, { strict: false });
    const keys: string[] = [];
    await inParallel(count, async (n) => {
      keys[n] = (await service.create(client, { ...ORDER, notifyUrl: urlOf(n) })).key;
    });
    return keys;
  }

  /** Stops the worker, does the work and starts a new worker. */
  async replaceWorkerAfter(work: () => Promise<void>): Promise<void> {
    await this.worker.victim('worker')?.replaceAfter(work);
    await this.worker.waitUntilUp();
  }

  /** Ends every pending notification and empties the queue. */
  async clear(): Promise<void> {
    await this.mariadb.query(`UPDATE usher_webhook SET status = 'FAILED', live_key = NULL WHERE status = 'PENDING'`);
    await this.redis.command('FLUSHALL');
  }

  async complete(key: string): Promise<void> {
    await this.app.get(usher.OrdersService, { strict: false }).complete(key, COMPLETION);
  }

  async completeAll(keys: string[]): Promise<void> {
    await inParallel(keys.length, (n) => this.complete(keys[n]!));
  }

  async count(where: string): Promise<number> {
    const [row] = await this.mariadb.query(`SELECT COUNT(*) AS n FROM usher_webhook WHERE ${where}`);
    return Number(row?.n);
  }

  async close(): Promise<void> {
    await this.app.close();
    await this.worker.retire();
    await Promise.all([this.redis.stop('SIGTERM'), this.mariadb.stop('SIGTERM')]);
    rmSync(this.folder, { recursive: true, force: true });
  }
}

async function createClient(app: INestApplicationContext): Promise<Usher.Client> {
  return (await app.get(usher.ClientsService, { strict: false }).create('Bench', null)).client;
}

function orderService(settings: Record<string, string>): DynamicModule {
  const root = usher.UsherModule.forRoot({
    environment: 'sandbox',
    masterKeys: settings.USHER_MASTER_KEYS!,
    database: { url: settings.DATABASE_URL! },
    queue: { url: settings.QUEUE_URL! },
    notifyUrls: { allowPrivate: true },
    deliver: false,
  });
  return { ...root, imports: [...(root.imports ?? []), usher.ClientsModule, usher.OrdersModule, usher.WebhookModule] };
}

const settingsOf = (redis: OwnRedis, mariadb: OwnMariadb): Record<string, string> => ({
  DATABASE_URL: mariadb.url,
  QUEUE_URL: redis.url,
  USHER_MASTER_KEYS: `bench:${randomBytes(32).toString('base64')}`,
  OPS_USER: 'ops',
  OPS_PASSWORD: randomBytes(12).toString('hex'),
  WEBHOOK_ALLOW_PRIVATE_HOSTS: 'true',
});

async function inParallel(count: number, work: (n: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) {
      const n = next;
      next += 1;
      await work(n);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, worker));
}
