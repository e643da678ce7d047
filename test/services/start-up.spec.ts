import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type Connection, createConnection } from 'mysql2/promise';
import { usherMigrations } from '../../src/database/migrator.js';
import {
  BACKEND,
  type Backend,
  createBackend,
  MYSQL_URL,
  POSTGRES_URL,
  REDIS_URL,
  type Settings,
} from '../support/backend.js';
import { OwnRedis } from '../support/own-redis.js';
import { freePort } from '../support/ports.js';
import { failedStart, usher } from '../support/process.js';

const MISSING = `${usherMigrations.length} database migration(s) are missing (${usherMigrations
  .map(({ name }) => name)
  .join(', ')}); run "usher migrate" first`;

const KEYS: Settings = {
  USHER_MASTER_KEYS: `test:${Buffer.alloc(32, 7).toString('base64')}`,
  OPS_USER: 'ops',
  OPS_PASSWORD: 'ops',
};

const refusal = (wanted: string) => ({ code: 1, stdout: '', stderr: `usher: ${wanted}\n` });

/** Expects exit code 1 and the same single line on standard error, from the server and from a command. */
async function expectRefusal(settings: Settings, wanted: string): Promise<void> {
  const ends = await Promise.all([
    failedStart({ ...KEYS, ...settings }),
    usher({ ...KEYS, ...settings }, ['client', 'list']),
  ]);
  expect(ends).toEqual([refusal(wanted), refusal(wanted)]);
}

/** The same from the server alone, because commands need no queue. */
const expectServerRefusal = async (settings: Settings, wanted: string): Promise<void> =>
  expect(await failedStart({ ...KEYS, ...settings })).toEqual(refusal(wanted));

const closed = (url: string, port: number, path = ''): string => {
  const at = new URL(url);
  return `${at.protocol}//someone:hunter2@127.0.0.1:${port}${path}`;
};

const hidden = (url: string): string => url.replace(/(\/\/[^:/@]*):[^@/]+@/, '$1:***@');

async function withMysql(work: (root: Connection) => Promise<void>): Promise<void> {
  const root = await createConnection(MYSQL_URL);
  await work(root).finally(() => root.end());
}

if (BACKEND === 'mariadb') {
  let backend: Backend;
  beforeAll(async () => {
    backend = await createBackend();
  });
  afterAll(() => backend.drop());

  describe('a MySQL that', () => {
    const queue = { QUEUE_URL: REDIS_URL };

    test('does not answer: the message has its URL without the password', async () => {
      const url = closed(MYSQL_URL, await freePort(), '/usher');
      const wanted = `cannot open ${hidden(url)}: connection refused; start it or correct DATABASE_URL`;
      await expectRefusal({ ...queue, DATABASE_URL: url }, wanted);
    });

    test('refuses the password', async () => {
      const url = closed(MYSQL_URL, Number(new URL(MYSQL_URL).port), '/usher');
      const wanted = `cannot open ${hidden(url)}: Access denied for user 'someone'@'127.0.0.1'; correct DATABASE_URL`;
      const { stderr } = await failedStart({ ...KEYS, ...queue, DATABASE_URL: url });
      expect(stderr.replace(/@'localhost'.*;/, "@'127.0.0.1';").replace(/ \(using password: YES\)/, '')).toBe(
        `usher: ${wanted}\n`,
      );
    });

    test('lacks the database', async () => {
      const url = `${MYSQL_URL}/no_such_database`;
      const wanted = `cannot open ${hidden(url)}: Unknown database 'no_such_database'; correct DATABASE_URL`;
      await expectRefusal({ ...queue, DATABASE_URL: url }, wanted);
    });

    test('accepts no further connection: the message does not blame the URL', async () => {
      const user = `usher_few_${process.pid}`;
      const at = new URL(backend.settings.DATABASE_URL!);
      await withMysql(async (root) => {
        await root.query(`CREATE USER ${user}@'%' WITH MAX_USER_CONNECTIONS 1`);
        await root.query(`GRANT ALL ON ${at.pathname.slice(1)}.* TO ${user}@'%'`);
        at.username = user;
        const only = await createConnection(at.href);
        const { code, stderr } = await failedStart({ ...backend.settings, DATABASE_URL: at.href });
        await only.end();
        await root.query(`DROP USER ${user}@'%'`);
        expect(stderr).toMatch(/^usher: cannot open mysql:[^\n]*; raise the connection limit of the server, or lower/);
        expect(code).toBe(1);
      });
    });

    test('lacks migrations', async () => {
      const url = `${MYSQL_URL}/mysql`;
      await expectRefusal({ ...queue, DATABASE_URL: url }, MISSING);
    });
  });

  describe('a Redis that', () => {
    const withQueue = (url: string): Settings => ({ ...backend.settings, QUEUE_URL: url });

    test('does not answer', async () => {
      const url = closed(REDIS_URL, await freePort());
      const wanted = `cannot open ${hidden(url)}: connection refused; start it or correct QUEUE_URL`;
      await expectServerRefusal(withQueue(url), wanted);
    });

    test('takes a connection and never answers', async () => {
      const silent = createServer((socket) => socket.resume()).listen(0, '127.0.0.1');
      await once(silent, 'listening');
      const url = `redis://127.0.0.1:${(silent.address() as AddressInfo).port}`;
      await expectServerRefusal(withQueue(url), `cannot open ${url}: no answer; start it or correct QUEUE_URL`);
      silent.close();
    });

    test('has no database of that number', async () => {
      const wanted = `cannot open ${REDIS_URL}/9999: ERR DB index is out of range; correct QUEUE_URL`;
      await expectServerRefusal(withQueue(`${REDIS_URL}/9999`), wanted);
    });

    test('evicts keys', async () => {
      const redis = await OwnRedis.start('--maxmemory-policy', 'allkeys-lru');
      const wanted =
        'QUEUE_URL: this Redis evicts keys (maxmemory-policy allkeys-lru); set it to noeviction, because evicted jobs are lost';
      await expectServerRefusal(withQueue(redis.url), wanted);
      await redis.stop();
    });

    test('requires another password', async () => {
      const redis = await OwnRedis.start('--requirepass', 'sesame');
      const { url } = redis;
      const wrong = url.replace('//', '//:hunter2@');
      const refused = 'WRONGPASS invalid username-password pair or user is disabled.';
      await expectServerRefusal(withQueue(wrong), `cannot open ${hidden(wrong)}: ${refused}; correct QUEUE_URL`);
      await expectServerRefusal(
        withQueue(url),
        `cannot open ${url}: NOAUTH Authentication required.; correct QUEUE_URL`,
      );
      await redis.stop();
    });

    test('is a cluster that lacks slots', async () => {
      const redis = await OwnRedis.start('--cluster-enabled', 'yes', '--cluster-port', String(await freePort()));
      const wanted = 'QUEUE_URL: this Redis Cluster is down (see CLUSTER INFO); repair it, then start again';
      await expectServerRefusal(withQueue(redis.url), wanted);
      await redis.stop();
    });
  });
}

if (BACKEND === 'postgres') {
  describe('a Postgres that', () => {
    test('does not answer: the message names the only setting that is set', async () => {
      const url = closed(POSTGRES_URL, await freePort(), '/usher');
      const wanted = `cannot open ${hidden(url)}: connection refused; start it or correct DATABASE_URL`;
      await expectRefusal({ DATABASE_URL: url }, wanted);
    });

    test('lacks the database', async () => {
      const url = `${POSTGRES_URL}/no_such_database`;
      const wanted = `cannot open ${hidden(url)}: database "no_such_database" does not exist; correct DATABASE_URL`;
      await expectRefusal({ DATABASE_URL: url }, wanted);
    });

    test('lacks the user', async () => {
      const url = closed(POSTGRES_URL, Number(new URL(POSTGRES_URL).port), '/postgres');
      const { code, stderr } = await failedStart({ ...KEYS, DATABASE_URL: url });
      expect(stderr).toMatch(/^usher: cannot open postgres:\/\/someone:\*\*\*@[^\n]+; correct DATABASE_URL\n$/);
      expect(code).toBe(1);
    });

    test('lacks the tables of the service', async () => {
      const wanted = MISSING;
      await expectRefusal({ DATABASE_URL: `${POSTGRES_URL}/postgres` }, wanted);
    });

    test('lacks the tables of the queue', async () => {
      const backend = await createBackend();
      const wanted =
        'the queue lacks tables that BullMQ needs, or has old ones; run "usher migrate" first, or correct ' +
        'QUEUE_PREFIX=usher-sandbox';
      await expectServerRefusal({ ...backend.settings, QUEUE_URL: `${POSTGRES_URL}/postgres` }, wanted);
      await backend.drop();
    });
  });
}
