import type { Server } from 'node:http';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { MAX_RUNNING_REQUESTS, MAX_WAITING_REQUESTS } from '../../../src/server/connections.js';
import { captureLog } from '../../auth/tokens/support.js';
import { Pipeline } from '../../support/pipeline.js';
import { type TestClient, TestUsher } from '../../support/usher.js';

/** As many as one connection may send without waiting. */
const MANY = MAX_RUNNING_REQUESTS + MAX_WAITING_REQUESTS;
const CONNECTIONS = 20;

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
  '%s: a request of another client finishes while the pipelined requests of many connections are mostly unfinished',
  async (url) => {
    const other = await usher.client();
    const pipelines = await Promise.all(Array.from({ length: CONNECTIONS }, () => Pipeline.open(usher.running[url])));
    for (const pipeline of pipelines) pipeline.send(Array.from({ length: MANY }, tokenRequest));
    await Promise.all(pipelines.map((pipeline) => pipeline.responses(1)));
    expect((await other.token()).status).toBe(200);
    const answered = pipelines.map(({ statuses }) => statuses.length).reduce((sum, one) => sum + one);
    expect(answered).toBeLessThan((CONNECTIONS * MANY) / 2);
    for (const pipeline of pipelines) pipeline.close();
  },
);

test('pipelined requests are all answered, in their order, bodies included', async () => {
  const pipeline = await Pipeline.open(usher.running.url);
  const kinds = [introspection(), { method: 'GET', path: '/health/live' }, { path: '/nowhere', body: '{}' }];
  const requests = Array.from({ length: MANY }, (_, n) => kinds[n % kinds.length]!);
  pipeline.send(requests);
  const statuses = await pipeline.responses(requests.length);
  expect(statuses).toEqual(requests.map((_, n) => [200, 200, 404][n % kinds.length]));
  pipeline.send([introspection()]);
  expect((await pipeline.responses(requests.length + 1)).at(-1)).toBe(200);
  pipeline.close();
});

test.each([700, 1_500, 8_000])(
  'requests of %i bytes are read so slowly that none of them is too many',
  async (bytes) => {
    const pipeline = await Pipeline.open(usher.running.url);
    const headers = { Authorization: client.basic, 'X-Pad': 'x'.repeat(bytes) };
    pipeline.send(Array.from({ length: 3 * MANY }, () => ({ method: 'GET', path: '/client', headers })));
    expect((await pipeline.responses(3 * MANY)).every((status) => status === 200)).toBe(true);
    pipeline.close();
  },
);

test('a connection on which more requests wait is closed, and Node makes no objects for those that follow', async () => {
  let made = 0;
  const count = (): number => (made += 1);
  const server = usher.running.app.getHttpServer() as Server;
  server.on('request', count);
  const pipeline = await Pipeline.open(usher.running.url);
  pipeline.send(Array.from({ length: 3 * MANY }, tokenRequest));
  await expect(pipeline.responses(3 * MANY)).rejects.toThrow('closed after');
  server.off('request', count);
  expect(made).toBeLessThan(2 * MANY);
  expect((await client.token()).status).toBe(200);
});

test.each([
  ['a malformed URL', { path: '/%' }, 400],
  ['a URL that is too long', { path: `/webhooks/${'x'.repeat(301)}` }, 414],
  ['an Expect header that is not supported', { path: '/nowhere', headers: { Expect: 'x' } }, 417],
])(
  '%s, which no limit counts, ends the connection, and the requests behind it are dropped',
  async (_, request, status) => {
    const log = captureLog(usher);
    const pipeline = await Pipeline.open(usher.running.url);
    pipeline.send([introspection(), ...Array.from({ length: MANY }, () => request)]);
    await expect(pipeline.responses(MANY)).rejects.toThrow('closed after 2 of');
    expect(pipeline.statuses).toEqual([200, status]);
    expect(log.filter((line) => JSON.stringify(line).includes(`"status":${status}`))).toHaveLength(1);
  },
);

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
  pipeline.send(Array.from({ length: MANY }, () => request));
  await pipeline.responses(1);
  pipeline.close();
  expect((await client.token()).status).toBe(200);
  const [{ count } = { count: 0 }] = await usher.dataSource.query<{ count: number }[]>(
    `SELECT COUNT(*) AS count FROM usher_grant WHERE client_id = '${one.id}'`,
  );
  expect(Number(count)).toBeLessThan(MANY / 2);
});
