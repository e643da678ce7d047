import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
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
import { failedStart, freePort, usher } from '../support/process.js';

const KEYS: Settings = {
  USHER_MASTER_KEYS: `test:${Buffer.alloc(32, 7).toString('base64')}`,
  OPS_USER: 'ops',
  OPS_PASSWORD: 'ops',
};

/** Expects exit code 1 and the same single line on standard error, from the server and from a command. */
async function expectRefusal(settings: Settings, wanted: string): Promise<void> {
  const ends = await Promise.all([
    failedStart({ ...KEYS, ...settings }),
    usher({ ...KEYS, ...settings }, ['client', 'list']),
  ]);
  const line = { code: 1, stdout: '', stderr: `usher: ${wanted}\n` };
  expect(ends).toEqual([line, line]);
}

const closed = (url: string, port: number, path = ''): string => {
  const at = new URL(url);
  return `${at.protocol}//someone:hunter2@127.0.0.1:${port}${path}`;
};

const hidden = (url: string): string => url.replace(/(\/\/[^:/@]*):[^@/]+@/, '$1:***@');

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

    test('lacks migrations', async () => {
      const url = `${MYSQL_URL}/mysql`;
      await expectRefusal(
        { ...queue, DATABASE_URL: url },
        '1 database migration(s) are missing (Initial1767225600000); run "usher migrate" first',
      );
    });
  });

  describe('a Redis that', () => {
    const withQueue = (url: string): Settings => ({ ...backend.settings, QUEUE_URL: url });

    test('does not answer', async () => {
      const url = closed(REDIS_URL, await freePort());
      const wanted = `cannot open ${hidden(url)}: connection refused; start it or correct QUEUE_URL`;
      await expectRefusal(withQueue(url), wanted);
    });

    test('has no database of that number', async () => {
      const wanted = `cannot open ${REDIS_URL}/9999: ERR DB index is out of range; correct QUEUE_URL`;
      await expectRefusal(withQueue(`${REDIS_URL}/9999`), wanted);
    });

    test('evicts keys', async () => {
      const redis = await OwnRedis.start('--maxmemory-policy', 'allkeys-lru');
      const wanted =
        'QUEUE_URL: this Redis evicts keys (maxmemory-policy allkeys-lru); set it to noeviction, because evicted jobs are lost';
      await expectRefusal(withQueue(redis.url), wanted);
      await redis.stop();
    });

    test('requires another password', async () => {
      const redis = await OwnRedis.start('--requirepass', 'sesame');
      const { url } = redis;
      const wrong = url.replace('//', '//:hunter2@');
      const refused = 'WRONGPASS invalid username-password pair or user is disabled.';
      await expectRefusal(withQueue(wrong), `cannot open ${hidden(wrong)}: ${refused}; correct QUEUE_URL`);
      await expectRefusal(withQueue(url), `cannot open ${url}: NOAUTH Authentication required.; correct QUEUE_URL`);
      await redis.stop();
    });

    test('is a cluster that lacks slots', async () => {
      const redis = await OwnRedis.start('--cluster-enabled', 'yes', '--cluster-port', String(await freePort()));
      const wanted = 'QUEUE_URL: this Redis Cluster is down (see CLUSTER INFO); repair it, then start again';
      await expectRefusal(withQueue(redis.url), wanted);
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

    test('lacks the tables of the queue, or of the service', async () => {
      const DATABASE_URL = `${POSTGRES_URL}/postgres`;
      await expectRefusal({ DATABASE_URL }, 'the queue has no tables yet, or old ones; run "usher migrate" first');
      const lacking = '1 database migration(s) are missing (Initial1767225600000); run "usher migrate" first';
      await expectRefusal({ DATABASE_URL, QUEUE_URL: REDIS_URL }, lacking);
    });
  });
}
