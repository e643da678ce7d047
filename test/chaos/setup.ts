import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { OwnRedis } from '../support/own-redis.js';
import { Random } from '../support/random.js';
import { bareEnvironment, Fleet, SERVER } from './fleet.js';
import { TIME_SETTINGS } from './limits.js';
import { CannotRun, type Options } from './options.js';
import { freePort } from './processes.js';
import type { Credentials } from './producers.js';
import { OwnMariadb, prepareRedis } from './services.js';
import { embeddedQuery, JOURNAL, type Query } from './tables.js';

/** The started processes and services of a run. */
export interface Setting {
  client: Credentials;
  fleet: Fleet;
  services: { redis: OwnRedis; mariadb: OwnMariadb } | null;
  query: Query;
  close: () => Promise<void>;
}

type Settings = Record<string, string>;

export async function setUp(options: Options, folder: string): Promise<Setting> {
  if (!existsSync(SERVER)) throw new CannotRun(`${SERVER} is missing; build it with "npm run build"`);
  return options.backend === 'embedded' ? embedded(options, folder) : onServices(options, folder);
}

async function onServices(options: Options, folder: string): Promise<Setting> {
  const redis = await prepareRedis(folder);
  const mariadb = await OwnMariadb.prepare(folder);
  await Promise.all([redis.start(), mariadb.start()]);
  await mariadb.createDatabase();
  const settings = { ...TIME_SETTINGS, ...serviceSettings(mariadb.url, redis.url) };
  const query: Query = (sql) => mariadb.query(sql);
  const client = await issueClient(settings);
  for (const statement of JOURNAL.mariadb) await query(statement);
  const fleet = new Fleet(folder, settings, Random.of(options.seed, 'fleet'));
  for (let n = 1; n <= options.apis; n += 1) fleet.add(`api-${n}`, 'api', await freePort());
  for (let n = 1; n <= options.workers; n += 1) fleet.add(`worker-${n}`, 'worker', await freePort());
  await fleet.start();
  const close = async (): Promise<void> => void (await Promise.all([redis.stop('SIGTERM'), mariadb.stop('SIGTERM')]));
  return { client, fleet, services: { redis, mariadb }, query, close };
}

async function embedded(options: Options, folder: string): Promise<Setting> {
  const data = join(folder, 'data');
  mkdirSync(data, { mode: 0o700 });
  const settings = { ...TIME_SETTINGS, DATABASE_URL: `embedded:${data}` };
  const query = embeddedQuery(data);
  const client = await issueClient(settings);
  const fleet = new Fleet(folder, settings, Random.of(options.seed, 'fleet'));
  fleet.add('server', 'all', await freePort());
  await fleet.start();
  for (const statement of JOURNAL.postgres) await query(statement);
  return { client, fleet, services: null, query, close: () => Promise.resolve() };
}

const serviceSettings = (databaseUrl: string, queueUrl: string): Settings => ({
  DATABASE_URL: databaseUrl,
  QUEUE_URL: queueUrl,
  USHER_MASTER_KEYS: `chaos:${randomBytes(32).toString('base64')}`,
  OPS_USER: 'ops',
  OPS_PASSWORD: randomBytes(12).toString('hex'),
  WEBHOOK_ALLOW_PRIVATE_HOSTS: 'true',
});

async function issueClient(settings: Settings): Promise<Credentials> {
  await usher(settings, 'migrate');
  const answer = await usher(settings, 'client', 'create', '--name', 'Chaos', '--json');
  const { client_id: id, client_secret: secret } = JSON.parse(answer) as Record<'client_id' | 'client_secret', string>;
  return { id, secret };
}

async function usher(settings: Settings, ...args: string[]): Promise<string> {
  const env = { ...bareEnvironment(), ...settings };
  const { stdout } = await promisify(execFile)(process.execPath, ['dist/cli.js', ...args], { env });
  return stdout;
}
