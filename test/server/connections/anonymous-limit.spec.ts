import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type Answer, basic, type TestClient, TestUsher } from '../../support/usher.js';

let usher: TestUsher;
let client: TestClient;
beforeAll(async () => {
  usher = await TestUsher.start({ ANONYMOUS_RATE_LIMIT: '2/h', TRUST_PROXY: '1' });
  client = await usher.client();
});
afterAll(() => usher.stop());

const from = (address: string, path: string, headers: Record<string, string> = {}): Promise<Answer> =>
  usher.request('GET', path, { 'x-forwarded-for': address, ...headers });

/** The statuses of requests, one after the other. */
async function statuses(address: string, paths: string[], headers?: Record<string, string>): Promise<number[]> {
  const all: number[] = [];
  for (const path of paths) all.push((await from(address, path, headers)).status);
  return all;
}

test('requests without credentials share one limit of their address, whatever they ask for', async () => {
  expect(await statuses('192.0.2.1', ['/docs/openapi.json', '/nowhere', '/nowhere', '/docs/openapi.json'])).toEqual([
    200, 404, 429, 429,
  ]);
  expect(await statuses('192.0.2.1', ['/ops', '/ops/queues', '/.well-known/oauth-authorization-server'])).toEqual([
    429, 429, 429,
  ]);
  expect(await statuses('192.0.2.2', ['/docs/openapi.json'])).toEqual([200]);
});

test('an address of IPv6 counts by its network', async () => {
  expect(await statuses('2001:db8::1', ['/nowhere', '/nowhere'])).toEqual([404, 404]);
  expect(await statuses('2001:db8::2', ['/nowhere'])).toEqual([429]);
  expect(await statuses('2001:db8:0:1::1', ['/nowhere'])).toEqual([404]);
});

test('the answer names the wait, in the form that its path has, and is logged under a request id', async () => {
  await statuses('192.0.2.3', ['/nowhere', '/nowhere']);
  const [problem, oauth] = [await from('192.0.2.3', '/docs'), await from('192.0.2.3', '/auth/token')];
  for (const { status, headers } of [problem, oauth]) {
    expect([status, Number(headers.get('retry-after'))]).toEqual([429, expect.any(Number)]);
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
    expect(headers.get('x-request-id')).toMatch(/./);
  }
  expect([problem.body.title, oauth.body.error]).toEqual(['Too Many Requests', 'slow_down']);
});

test('health checks and requests with credentials are never counted, and pass above the limit', async () => {
  const many = (path: string) => Array.from({ length: 5 }, () => path);
  const operator = { authorization: basic('ops', 'ops') };
  const address = '192.0.2.4';
  expect(await statuses(address, many('/health/live'))).toEqual([200, 200, 200, 200, 200]);
  expect(await statuses(address, many('/client'), { authorization: client.basic })).toEqual([200, 200, 200, 200, 200]);
  expect(await statuses(address, ['/nowhere', '/nowhere', '/nowhere'])).toEqual([404, 404, 429]);
  expect(await statuses(address, ['/health/live', '/health/ready'])).toEqual([200, 200]);
  expect(await statuses(address, ['/ops/metrics'], operator)).toEqual([200]);
});

test('an unknown path counts with credentials too, because nothing checks them', async () => {
  const headers = { authorization: 'Bearer invented' };
  expect(await statuses('192.0.2.5', ['/nowhere', '/nowhere', '/nowhere'], headers)).toEqual([404, 404, 429]);
});
