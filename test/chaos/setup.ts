import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { Random } from '../support/random.js';
import { OBSERVED, samplerSettings } from '../soak/soak.js';
import { RELEASED, releasedBuild } from '../support/released-build.js';
import { bareEnvironment, Fleet, SERVER } from './fleet.js';
import { JOURNAL } from './journal.js';
import { KeyRotation } from './keys.js';
import { RUN_SETTINGS } from './limits.js';
import { CannotRun, type Options } from './options.js';
import { freePort } from '../support/ports.js';
import type { Credentials } from './producers.js';
import { ChaosRedis } from './redis.js';
import { OwnMariadb } from './services.js';
import { embeddedQuery, type Query } from './tables.js';

/** The started processes and services of a run. */
export interface Setting {
  client: Credentials;
  /** A client without orders, whose secret is guessed at. */
  guessedClient: Credentials;
  /** The client of the hosts that never answer. */
  hangingClient: Credentials;
  fleet: Fleet;
  keys: KeyRotation;
  services: { redis: ChaosRedis; mariadb: OwnMariadb } | null;
  query: Query;
  close: () => Promise<void>;
}

type Settings = Record<string, string>;

export async function setUp(options: Options, folder: string): Promise<Setting> {
  for (const build of buildsOf(options))
    if (!existsSync(build)) throw new CannotRun(`${build} is missing; build it with "npm run build"`);
  return options.backend === 'embedded' ? embedded(options, folder) : onServices(options, folder);
}

/** Absolute paths, because Node finds the packages of a build beside it. */
const buildsOf = ({ upgradeFrom }: Options): string[] =>
  upgradeFrom === null
    ? [SERVER]
    : [SERVER, upgradeFrom === RELEASED ? releasedBuild().main : resolve(upgradeFrom, SERVER)];

async function onServices(options: Options, folder: string): Promise<Setting> {
  const mariadb = await OwnMariadb.prepare(folder);
  const [redis] = await Promise.all([ChaosRedis.start(options.redis, folder), mariadb.start()]);
  await mariadb.createDatabase();
  const settings = { ...RUN_SETTINGS, ...serviceSettings(mariadb.url, redis.url) };
  const query: Query = (sql) => mariadb.query(sql);
  const clients = await issueClients(settings);
  for (const statement of JOURNAL.mariadb) await query(statement);
  const { seed, soakMinutes } = options;
  const sampled = soakMinutes > 0 ? { ...settings, ...samplerSettings(folder) } : settings;
  const fleet = new Fleet(folder, sampled, Random.of(seed, 'fleet'), buildsOf(options));
  if (soakMinutes > 0) fleet.spared = OBSERVED;
  for (let n = 1; n <= options.apis; n += 1) fleet.add(`api-${n}`, 'api', await freePort());
  for (let n = 1; n <= options.workers; n += 1) fleet.add(`worker-${n}`, 'worker', await freePort());
  await fleet.start();
  const close = async (): Promise<void> => void (await Promise.all([redis.stop(), mariadb.stop('SIGTERM')]));
  const keys = new KeyRotation(settings, usher);
  return { ...clients, fleet, keys, services: { redis, mariadb }, query, close };
}

async function embedded(options: Options, folder: string): Promise<Setting> {
  const data = join(folder, 'data');
  mkdirSync(data, { mode: 0o700 });
  const settings = { ...RUN_SETTINGS, DATABASE_URL: `embedded:${data}` };
  const query = embeddedQuery(data);
  const clients = await issueClients(settings);
  const fleet = new Fleet(folder, settings, Random.of(options.seed, 'fleet'), buildsOf(options));
  fleet.add('server', 'all', await freePort());
  await fleet.start();
  for (const statement of JOURNAL.postgres) await query(statement);
  const keys = new KeyRotation(settings, usher);
  return { ...clients, fleet, keys, services: null, query, close: () => Promise.resolve() };
}

const serviceSettings = (databaseUrl: string, queueUrl: string): Settings => ({
  DATABASE_URL: databaseUrl,
  QUEUE_URL: queueUrl,
  USHER_MASTER_KEYS: `chaos:${randomBytes(32).toString('base64')}`,
  OPS_USER: 'ops',
  OPS_PASSWORD: randomBytes(12).toString('hex'),
  WEBHOOK_ALLOW_PRIVATE_HOSTS: 'true',
});

async function issueClients(settings: Settings): Promise<Pick<Setting, 'client' | 'guessedClient' | 'hangingClient'>> {
  await usher(settings, 'migrate');
  const [client, guessedClient, hangingClient] = [
    await issueClient(settings),
    await issueClient(settings),
    await issueClient(settings),
  ];
  return { client, guessedClient, hangingClient };
}

async function issueClient(settings: Settings): Promise<Credentials> {
  const answer = await usher(settings, 'client', 'create', '--name', 'Chaos', '--json');
  const { client_id: id, client_secret: secret } = JSON.parse(answer) as Record<'client_id' | 'client_secret', string>;
  return { id, secret };
}

async function usher(settings: Settings, ...args: string[]): Promise<string> {
  const env = { ...bareEnvironment(), ...settings };
  const { stdout } = await promisify(execFile)(process.execPath, ['dist/cli.js', ...args], { env });
  return stdout;
}
