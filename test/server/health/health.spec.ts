import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { BACKEND, MYSQL_URL, POSTGRES_URL, REDIS_URL } from '../../support/backend.js';
import { eventually } from '../../support/eventually.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { TestUsher } from '../../support/usher.js';

let usher: TestUsher;
let lines: { database: TcpProxy; queue: TcpProxy } | undefined;

beforeAll(async () => {
  if (BACKEND === 'embedded') {
    usher = await TestUsher.start();
    return;
  }
  const [database, queue] = BACKEND === 'mariadb' ? [MYSQL_URL, REDIS_URL] : [POSTGRES_URL, POSTGRES_URL];
  const made = { database: await TcpProxy.to(database), queue: await TcpProxy.to(queue) };
  lines = made;
  usher = await TestUsher.start(({ DATABASE_URL, QUEUE_URL }) => ({
    DATABASE_URL: made.database.through(DATABASE_URL!),
    QUEUE_URL: made.queue.through(QUEUE_URL ?? DATABASE_URL!),
  }));
});
afterAll(async () => {
  await usher.stop();
  lines?.database.close();
  lines?.queue.close();
});

const ready = () => usher.request('GET', '/health/ready', {});

describe('health', () => {
  test('live and ready answer 200 without credentials', async () => {
    const live = await usher.request('GET', '/health/live', {});
    expect([live.status, live.body]).toEqual([200, { status: 'ok' }]);
    const { status, body } = await ready();
    expect([status, body]).toEqual([200, { status: 'ok' }]);
  });

  if (BACKEND === 'embedded') return;
  test.each(['database', 'queue'] as const)(
    'ready is 503 that names the %s while it is away, live stays 200, and ready comes back with it',
    async (what) => {
      lines![what].cut();
      const { body, headers } = await eventually(`not ready without its ${what}`, async () => {
        const answer = await ready();
        return answer.status === 503 ? answer : null;
      });
      expect(body).toMatchObject({ title: 'Service Unavailable', detail: `the ${what} is not ready` });
      expect(headers.get('retry-after')).toBe('5');
      expect((await usher.request('GET', '/health/live', {})).status).toBe(200);
      lines![what].mend();
      await eventually(`ready again with its ${what}`, async () => (await ready()).status === 200);
    },
  );

  test('connections to the database that fall silent are given up', async () => {
    await Promise.all(Array.from({ length: 20 }, ready));
    lines!.database.forget();
    await eventually('all of them are replaced', async () => {
      const answers = await Promise.all(Array.from({ length: 20 }, ready));
      return answers.every(({ status }) => status === 200);
    });
  });
});
