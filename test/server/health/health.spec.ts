import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { usherMigrations } from '../../../src/database/migrator.js';
import { HealthController } from '../../../src/server/health/health.controller.js';
import { BACKEND, MYSQL_URL, POSTGRES_URL, REDIS_URL } from '../../support/backend.js';
import { eventually } from '../../support/eventually.js';
import { statementsOf } from '../../support/statements.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { TestUsher } from '../../support/usher.js';

let usher: TestUsher;
/** On servers: a process of each other role. */
let worker: TestUsher | undefined;
let api: TestUsher | undefined;
let proxies: { database: TcpProxy; queue: TcpProxy } | undefined;

beforeAll(async () => {
  if (BACKEND === 'embedded') {
    usher = await TestUsher.start();
    return;
  }
  const [database, queue] = BACKEND === 'mariadb' ? [MYSQL_URL, REDIS_URL] : [POSTGRES_URL, POSTGRES_URL];
  const made = { database: await TcpProxy.to(database), queue: await TcpProxy.to(queue) };
  proxies = made;
  const start = (role: string) =>
    TestUsher.start(({ DATABASE_URL, QUEUE_URL }) => ({
      DATABASE_URL: made.database.through(DATABASE_URL!),
      QUEUE_URL: made.queue.through(QUEUE_URL ?? DATABASE_URL!),
      USHER_ROLE: role,
      // A connection that stops answering is closed after twice the longer one.
      DATABASE_TIMEOUT: '5s',
      WEBHOOK_TIMEOUT: '5s',
    }));
  [usher, api, worker] = [await start('all'), await start('api'), await start('worker')];
});
afterAll(async () => {
  for (const one of [usher, api, worker]) await one?.stop();
  proxies?.database.close();
  proxies?.queue.close();
});

const ready = (of = usher) => of.request('GET', '/health/ready', {});

async function expectNotReady(of: TestUsher, without: string): Promise<void> {
  const { body, headers } = await eventually(`not ready without its ${without}`, async () => {
    const answer = await ready(of);
    return answer.status === 503 ? answer : null;
  });
  expect(body).toMatchObject({ title: 'Service Unavailable', detail: `the ${without} is not ready` });
  expect(headers.get('retry-after')).toBe('5');
  expect((await of.request('GET', '/health/live', {})).status).toBe(200);
}

describe('health', () => {
  test('live and ready answer 200 without credentials', async () => {
    const live = await usher.request('GET', '/health/live', {});
    expect([live.status, live.body]).toEqual([200, { status: 'ok' }]);
    const { status, body } = await ready();
    expect([status, body]).toEqual([200, { status: 'ok' }]);
  });

  test('many requests for ready at the same moment share one check', async () => {
    const controller = usher.running.app.get(HealthController);
    const statements = await statementsOf(usher.dataSource, () =>
      Promise.all(Array.from({ length: 50 }, () => controller.ready())),
    );
    // Apart from the statements of what runs beside them, such as a retry run.
    expect(statements.filter(({ sql }) => sql.includes('WHERE 1 = 0'))).toHaveLength(1);
  });

  test('while a migration is missing, ready is 503, because the process needs tables that are not there', async () => {
    const rename = (from: string, to: string): Promise<unknown> =>
      usher.dataSource.query(`UPDATE usher_migration SET name = '${to}' WHERE name = '${from}'`);
    const [{ name = '' } = {}] = usherMigrations;
    await rename(name, 'Another');
    const { status, body } = await ready();
    await rename('Another', name);
    expect([status, body.detail]).toEqual([503, 'the database is not ready']);
    expect((await ready()).status).toBe(200);
  });

  test('failed probes write one line a minute, without a stack', async () => {
    const lines: { level: number; context?: string; msg?: string }[] = [];
    const log = { write: (line: string) => void lines.push(JSON.parse(line) as (typeof lines)[0]) };
    const logged = await TestUsher.start({ LOG_LEVEL: 'info' }, log);
    await logged.dataSource.query("DELETE FROM usher_migration WHERE name LIKE 'Initial%'");
    for (let n = 0; n < 3; n += 1) expect((await ready(logged)).status).toBe(503);
    await logged.stop();
    const faults = lines
      .filter(({ level, context = '' }) => level > 30 && ['http', 'health'].includes(context))
      .map(({ msg }) => msg);
    expect(faults).toEqual(['1 migration(s) are missing']);
  });

  if (BACKEND === 'embedded') return;
  test('while the database is away, ready is 503 and names it and live is 200; then ready is 200 again', async () => {
    proxies!.database.cut();
    await expectNotReady(usher, 'database');
    proxies!.database.restore();
    await eventually('ready again with its database', async () => (await ready()).status === 200);
  });

  test('while the queue is away, a worker is not ready, and processes that answer requests are', async () => {
    proxies!.queue.cut();
    await expectNotReady(worker!, 'queue');
    expect((await ready(api)).status).toBe(200);
    expect((await ready(usher)).status).toBe(200);
    const client = await api!.client('https://client.example/notify');
    expect((await client.token()).status).toBe(200);
    const key = await client.completedOrder();
    expect(await api!.webhook(key, 'PENDING')).toMatchObject({ attemptCount: 0 });
    proxies!.queue.restore();
    await eventually('the worker is ready again with its queue', async () => (await ready(worker)).status === 200);
  });

  test('database connections that stop answering are replaced', async () => {
    // Each looks for the client.
    const reads = () =>
      Promise.all(Array.from({ length: 20 }, () => usher.request('GET', '/auth/authorize?client_id=nobody', {})));
    await reads();
    proxies!.database.silence();
    await eventually('all connections are replaced', async () => {
      const answers = await reads();
      return answers.every(({ status }) => status === 400);
    });
  });
});
