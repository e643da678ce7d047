import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { MAX_RUNNING_REQUESTS } from '../../../src/server/connections.js';
import { Pipeline } from '../../support/pipeline.js';
import { type TestClient, TestUsher } from '../../support/usher.js';

const MANY = 5_000;

let usher: TestUsher;
let client: TestClient;
beforeAll(async () => {
  usher = await TestUsher.start({ TOKEN_RATE_LIMIT: 'off', OPS_PORT: '0' });
  client = await usher.client();
});
afterAll(() => usher.stop());

const post = (path: string, body: object) => ({
  path,
  headers: { Authorization: client.basic, 'Content-Type': 'application/json' },
  body: JSON.stringify(body),
});
const introspection = () => post('/auth/introspect', { token: 'x' });
const tokenRequest = () => post('/auth/token', { grant_type: 'client_credentials' });

test.each(['url', 'opsUrl'] as const)(
  '%s: a request of another client finishes while 5,000 pipelined requests of one connection are mostly unfinished',
  async (url) => {
    const other = await usher.client();
    const pipeline = await Pipeline.open(usher.running[url]);
    pipeline.send(Array.from({ length: MANY }, tokenRequest));
    await pipeline.responses(1);
    expect((await other.token()).status).toBe(200);
    expect(pipeline.statuses.length).toBeLessThan(MANY / 2);
    pipeline.close();
  },
);

test('pipelined requests are all answered, in their order, bodies included', async () => {
  const pipeline = await Pipeline.open(usher.running.url);
  const kinds = [introspection(), { method: 'GET', path: '/health/live' }, { path: '/nowhere', body: '{}' }];
  const requests = Array.from({ length: 300 }, (_, n) => kinds[n % kinds.length]!);
  pipeline.send(requests);
  const statuses = await pipeline.responses(requests.length);
  expect(statuses).toEqual(requests.map((_, n) => [200, 200, 404][n % kinds.length]));
  pipeline.send([introspection()]);
  expect((await pipeline.responses(requests.length + 1)).at(-1)).toBe(200);
  pipeline.close();
});

test('a body that arrives while earlier requests of its connection still wait is read', async () => {
  const pipeline = await Pipeline.open(usher.running.url);
  const large = { ...introspection(), body: JSON.stringify({ token: 'x', pad: 'x'.repeat(15_000) }) };
  const requests = Array.from({ length: 5 * MAX_RUNNING_REQUESTS }, () => large);
  pipeline.send(requests);
  expect(await pipeline.responses(requests.length)).toEqual(requests.map(() => 200));
  pipeline.close();
});

test('the requests of a closed connection that have not begun never run', async () => {
  const one = await usher.client();
  const pipeline = await Pipeline.open(usher.running.url);
  const request = {
    path: '/auth/token',
    headers: { Authorization: one.basic, 'Content-Type': 'application/json' },
    body: '{"grant_type":"client_credentials"}',
  };
  pipeline.send(Array.from({ length: 1_000 }, () => request));
  await pipeline.responses(1);
  pipeline.close();
  expect((await client.token()).status).toBe(200);
  const [{ count } = { count: 0 }] = await usher.dataSource.query<{ count: number }[]>(
    `SELECT COUNT(*) AS count FROM usher_grant WHERE client_id = '${one.id}'`,
  );
  expect(Number(count)).toBeLessThan(500);
});
