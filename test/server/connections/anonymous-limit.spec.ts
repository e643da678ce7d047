import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { CREDENTIAL_ROUTES } from '../../../src/server/connections.js';
import { routesOf } from '../../../src/server/error.filter.js';
import { exchange, firstAnswer } from '../../auth/tokens/support.js';
import { type Answer, basic, OWN_CREDENTIALS, type TestClient, TestUsher } from '../../support/usher.js';

let usher: TestUsher;
let client: TestClient;
beforeAll(async () => {
  usher = await TestUsher.start({ ANONYMOUS_RATE_LIMIT: '2/h', TRUST_PROXY: '1', AUTH_FAILURE_LIMIT: '1000/h' });
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

test('a browser gets a page', async () => {
  const paths = ['/ops', '/ops/queues', '/portal', '/auth/sign-in', '/auth/authorize'];
  for (const path of paths) {
    const address = `198.51.100.${paths.indexOf(path)}`;
    await statuses(address, ['/nowhere', '/nowhere']);
    const { status, headers } = await from(address, path, { accept: 'text/html' });
    expect([path, status, headers.get('content-type'), headers.get('retry-after')]).toEqual([
      path,
      429,
      'text/html; charset=utf-8',
      expect.stringMatching(/^\d+$/),
    ]);
  }
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

test('a page that reads no credentials counts with them too, and an empty header is none', async () => {
  const headers = { authorization: 'Bearer invented' };
  const pages = ['/portal', '/docs', '/.well-known/oauth-authorization-server'];
  expect(await statuses('192.0.2.6', pages, headers)).toEqual([200, 200, 429]);
  expect(await statuses('192.0.2.7', ['/client', '/client', '/client'], { authorization: '' })).toEqual([
    401, 401, 429,
  ]);
});

test('two Authorization headers count, because nothing checks them', async () => {
  const twice = [`Authorization: ${client.basic}`, `Authorization: ${client.basic}`];
  const lines = [
    'GET /client HTTP/1.1',
    'Host: localhost',
    'X-Forwarded-For: 192.0.2.8',
    'Connection: close',
    ...twice,
  ];
  const answers = [];
  for (let n = 0; n < 3; n += 1)
    answers.push(firstAnswer(await exchange(usher.running.url, [...lines, '', ''].join('\r\n'))));
  expect(answers.map(({ status }) => status)).toEqual([400, 400, 429]);
});

test('where operators have a port of their own, their routes count at the public one, which answers 404', async () => {
  const other = await TestUsher.start({ ...OWN_CREDENTIALS, ANONYMOUS_RATE_LIMIT: '2/h', OPS_PORT: '0' });
  const headers = { authorization: basic('ops', 'ops') };
  const statuses = async (server: TestUsher): Promise<number[]> => {
    const answers = [];
    for (let n = 0; n < 3; n += 1) answers.push(await server.request('GET', '/ops/metrics', headers));
    return answers.map(({ status }) => status);
  };
  expect([await statuses(other), await statuses(other.atOpsPort())]).toEqual([
    [404, 404, 429],
    [200, 200, 200],
  ]);
  await other.stop();
});

test('exactly the routes that check credentials are without this limit', async () => {
  const authorization = basic('nobody', 'wrong');
  const routes = routesOf(usher.running.app.getHttpAdapter().getInstance() as never);
  const differing: string[] = [];
  for (const [n, { method, url }] of routes.filter(({ method }) => method !== 'HEAD').entries()) {
    const headers = { authorization, 'x-forwarded-for': `198.51.100.${n}`, accept: 'application/json' };
    const path = url.replace(/:\w+/g, 'x').replace('*', 'x');
    const { status } = await usher.request(method, path, headers);
    if ((status === 401) !== CREDENTIAL_ROUTES.test(url)) differing.push(`${method} ${url} ${status}`);
  }
  expect(differing).toEqual([]);
});
