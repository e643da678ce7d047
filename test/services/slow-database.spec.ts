import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Purge } from '../../src/retention/purge.js';
import { BACKEND } from '../support/backend.js';
import { eventually } from '../support/eventually.js';
import { OwnDatabase } from '../support/own-database.js';
import { usher } from '../support/process.js';
import { TestReceiver } from '../support/receiver.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { NEW_ORDER, type TestClient, TestUsher } from '../support/usher.js';

let database: OwnDatabase;
let proxy: TcpProxy;
let receiver: TestReceiver;
let server: TestUsher;
let client: TestClient;

beforeAll(async () => {
  database = await OwnDatabase.create();
  expect(await usher(database.settings, ['migrate'])).toMatchObject({ code: 0 });
  proxy = await TcpProxy.to(database.url);
  const behind = { DATABASE_URL: proxy.through(database.url), QUEUE_URL: database.settings.QUEUE_URL ?? database.url };
  server = await TestUsher.start({ ...database.settings, ...behind, USHER_ROLE: 'api', DATABASE_TIMEOUT: '2s' });
  receiver = await TestReceiver.start();
  client = await server.client(receiver.url);
  await client.order();
});
afterAll(async () => {
  await server.stop();
  proxy.close();
  receiver.close();
  await database.drop();
});

test('a write that waits too long is answered that it may still take effect, and the database ends it', async () => {
  const release = await database.lock('usher_movie_order');
  const answered = client.call('POST', '/movie-orders', NEW_ORDER);
  await eventually('the statement waits', () => database.isWaitingForLock());
  const { status, headers, body } = await answered;
  expect([status, headers.get('retry-after'), body.detail]).toEqual([
    503,
    '5',
    'the database gave no answer within 2 s; the request may still take effect',
  ]);
  await eventually(
    'the statement has ended, though the lock is held',
    async () => !(await database.isWaitingForLock()),
  );
  expect((await server.request('GET', '/health/live', {})).status).toBe(200);
  await release();
  await client.order();
});

test('a request that sends a test may wait for its receiver for longer', async () => {
  let answer = (): void => undefined;
  receiver.behaviour = (response) => (answer = () => void response.writeHead(200).end());
  const tested = client.call('POST', '/webhooks/test');
  await eventually('the test has arrived', () => receiver.arrivals.length > 0);
  const release = await database.lock('usher_movie_order');
  // It arrived later than the test, and its time is over.
  expect((await client.call('POST', '/movie-orders', NEW_ORDER)).status).toBe(503);
  await release();
  answer();
  expect(await tested).toMatchObject({ status: 200, body: { outcome: 'delivered' } });
});

test('the purge takes as long as it needs', async () => {
  for (const statement of SLOW_DELETIONS[BACKEND] ?? []) await database.query(statement);
  await database.query(
    `INSERT INTO usher_idempotency_key (client_id, owner_id, idempotency_key, request_digest, order_id, created_at)
     VALUES ('c', '', 'k', 'd', 'o', 0)`,
  );
  expect(await server.running.app.get(Purge, { strict: false }).run()).toMatchObject({ idempotencyKeys: 1 });
});

const SLOW_DELETIONS: Record<string, string[]> = {
  mariadb: ['CREATE TRIGGER slow BEFORE DELETE ON usher_idempotency_key FOR EACH ROW DO SLEEP(3)'],
  postgres: [
    `CREATE FUNCTION slow() RETURNS trigger AS $$ BEGIN PERFORM pg_sleep(3); RETURN OLD; END $$ LANGUAGE plpgsql`,
    'CREATE TRIGGER slow BEFORE DELETE ON usher_idempotency_key FOR EACH ROW EXECUTE FUNCTION slow()',
  ],
};

test('a read while the database hangs is answered 503', async () => {
  proxy.silence();
  const { status, body } = await client.call('GET', '/movie-orders');
  proxy.cut();
  proxy.restore();
  expect([status, body.detail]).toEqual([503, 'the database gave no answer within 2 s; try again']);
});
