import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { BACKEND, MYSQL_URL, POSTGRES_URL, REDIS_URL } from '../../support/backend.js';
import { eventually } from '../../support/eventually.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { TestUsher } from '../../support/usher.js';

let usher: TestUsher;
let proxies: { database: TcpProxy; queue: TcpProxy } | undefined;

beforeAll(async () => {
  if (BACKEND === 'embedded') {
    usher = await TestUsher.start();
    return;
  }
  const [database, queue] = BACKEND === 'mariadb' ? [MYSQL_URL, REDIS_URL] : [POSTGRES_URL, POSTGRES_URL];
  const made = { database: await TcpProxy.to(database), queue: await TcpProxy.to(queue) };
  proxies = made;
  usher = await TestUsher.start(({ DATABASE_URL, QUEUE_URL }) => ({
    DATABASE_URL: made.database.through(DATABASE_URL!),
    QUEUE_URL: made.queue.through(QUEUE_URL ?? DATABASE_URL!),
  }));
});
afterAll(async () => {
  await usher.stop();
  proxies?.database.close();
  proxies?.queue.close();
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
    'while the %s is away, ready is 503 and names it and live is 200; then ready is 200 again',
    async (what) => {
      proxies![what].cut();
      const { body, headers } = await eventually(`not ready without its ${what}`, async () => {
        const answer = await ready();
        return answer.status === 503 ? answer : null;
      });
      expect(body).toMatchObject({ title: 'Service Unavailable', detail: `the ${what} is not ready` });
      expect(headers.get('retry-after')).toBe('5');
      expect((await usher.request('GET', '/health/live', {})).status).toBe(200);
      proxies![what].restore();
      await eventually(`ready again with its ${what}`, async () => (await ready()).status === 200);
    },
  );

  test('database connections that stop answering are replaced', async () => {
    await Promise.all(Array.from({ length: 20 }, ready));
    proxies!.database.silence();
    await eventually('all connections are replaced', async () => {
      const answers = await Promise.all(Array.from({ length: 20 }, ready));
      return answers.every(({ status }) => status === 200);
    });
  });
});
