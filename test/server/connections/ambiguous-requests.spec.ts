import { beforeAll, describe, expect, test } from '@jest/globals';
import { exchange, firstAnswer } from '../../auth/tokens/support.js';
import { basic, type TestClient, TestUsher } from '../../support/usher.js';

let usher: TestUsher;
let client: TestClient;
let token: string;
beforeAll(async () => {
  usher = await TestUsher.shared();
  client = await usher.client('https://example.com/');
  token = String((await client.token()).body.access_token);
});

const OPERATOR = basic('ops', 'ops');
const INTERNAL = basic('internal', 'internal');

/** A route of each kind, and the credentials that it takes. */
const ROUTES: [line: string, authorization: () => string][] = [
  ['POST /auth/token', () => client.basic],
  ['GET /client', () => client.basic],
  ['GET /webhooks', () => `Bearer ${token}`],
  ['POST /movie-orders', () => `Bearer ${token}`],
  ['POST /internal/movie-orders/x/complete', () => INTERNAL],
  ['GET /ops', () => OPERATOR],
  ['GET /ops/metrics', () => OPERATOR],
  ['POST /ops/clients/new', () => OPERATOR],
  ['GET /docs', () => OPERATOR],
  ['GET /docs/openapi.json', () => OPERATOR],
  ['GET /auth/authorize', () => client.basic],
  ['GET /.well-known/oauth-authorization-server', () => client.basic],
  ['GET /health/live', () => client.basic],
  ['GET /nowhere', () => client.basic],
];

async function send(line: string, headers: string[], body = ''): Promise<{ status: number; text: string }> {
  const lines = [`${line} HTTP/1.1`, 'Host: localhost', 'Connection: close', `Content-Length: ${body.length}`];
  const text = await exchange(usher.running.url, [...lines, ...headers, '', body].join('\r\n'));
  return { status: firstAnswer(text).status, text };
}

describe.each(ROUTES)('%s', (line, authorization) => {
  test.each(['Authorization', 'Content-Type', 'Host'])('is refused with two %s headers', async (name) => {
    const given: Record<string, string> = {
      Authorization: authorization(),
      'Content-Type': 'application/json',
      Host: 'localhost',
    };
    const headers = ['Authorization', 'Content-Type'].map((one) => `${one}: ${given[one]}`);
    const { status, text } = await send(line, [...headers, `${name.toLowerCase()}: ${given[name]}`]);
    expect([status, text]).toEqual([400, expect.stringContaining(`send only one ${name} header`)]);
  });
});

test.each([
  ['POST /movie-orders', '{}', 'application/json; charset=utf-16'],
  ['POST /movie-orders', '{}', 'application/json; charset="iso-8859-1"'],
  ['POST /movie-orders', '{}', 'application/json; charset=utf-8; charset=utf-16'],
  ['POST /webhooks/test', '', 'application/json; charset=utf-16'],
  ['PUT /client/notify-url', '{}', 'application/json; charset=utf-16'],
  ['POST /internal/movie-orders/x/complete', '{}', 'application/json; charset=utf-16'],
  ['POST /auth/sign-in', 'name=x', 'application/x-www-form-urlencoded; charset=utf-16'],
  ['POST /ops/clients/new', 'name=x', 'application/x-www-form-urlencoded; charset=utf-16'],
])('%s is answered 415 if its body is %j of %s', async (line, body, type) => {
  const [, path = ''] = line.split(' ');
  const byPath = { client: client.basic, internal: INTERNAL, ops: OPERATOR }[path.split('/')[1] ?? ''];
  const headers = [`Authorization: ${byPath ?? `Bearer ${token}`}`, `Content-Type: ${type}`];
  expect((await send(line, headers, body)).status).toBe(415);
});

test.each(['/webhooks', '/movie-orders', '/webhooks/undelivered'])(
  '%s takes a limit in decimal digits only',
  async (path) => {
    for (const limit of ['0x10', '1e1', '0b11', '%2B5', '%205', '5.0', '']) {
      const { status, body } = await client.call('GET', `${path}?limit=${limit}`);
      const message = expect.stringMatching(/^must be a whole number from 1 to 10+$/);
      expect([limit, status, body.errors]).toEqual([limit, 400, [{ parameter: 'limit', message }]]);
    }
    expect((await client.call('GET', `${path}?limit=10`)).status).toBe(200);
  },
);

test.each([
  ['/webhooks', 'status', 'SUCCESS'],
  ['/webhooks', 'createdAfter', '2026-01-01T00:00:00Z'],
  ['/movie-orders', 'limit', '1'],
  ['/movie-orders/totals', 'day', '2026-01-01'],
  ['/webhooks/undelivered', 'cursor', 'x'],
])('%s says that the query has %s more than once', async (path, parameter, value) => {
  const { status, body } = await client.call('GET', `${path}?${parameter}=${value}&${parameter}=${value}`);
  expect([status, body.errors]).toEqual([400, [{ parameter, message: 'is given more than once' }]]);
});

test.each([
  ['{"totalAmount":1,"total\\u0041mount":1}', 'the body has the field totalAmount more than once'],
  ['{"":1,"":2}', 'the body has the field "" more than once'],
  ['{"a":1,"__proto__":1}', 'the fields __proto__ and constructor.prototype are not allowed'],
  ['\ufeff{"constructor":{"prototype":1}}', 'the fields __proto__ and constructor.prototype are not allowed'],
  ['{"__proto__":1', 'the body is not valid JSON'],
])('the body %j is refused because %s', async (text, detail) => {
  const { status, body } = await client.call('POST', '/movie-orders', text, { 'content-type': 'application/json' });
  expect([status, body.detail]).toEqual([400, detail]);
});

test('a lone surrogate in a Notify URL is refused, not replaced', async () => {
  const notifyUrl = 'https://example.com/\ud800';
  const order = await client.call('POST', '/movie-orders', {
    currencyCode: 'MYR',
    totalAmount: 1,
    bookingAmount: 0,
    payableAmount: 1,
    notifyUrl,
  });
  const registered = await usher.request('PUT', '/client/notify-url', { authorization: client.basic }, { notifyUrl });
  expect([order.status, registered.status]).toEqual([400, 400]);
});
