import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Operation } from '../../src/http/operation.js';
import { operationsOf } from '../../src/server/openapi/document.js';
import { TestReceiver } from '../support/receiver.js';
import { type Answer, basic, NEW_ORDER, type TestClient, TestUsher } from '../support/usher.js';

let usher: TestUsher;
let receiver: TestReceiver;
let client: TestClient;
let authorization: Record<string, string>;
beforeAll(async () => {
  usher = await TestUsher.shared();
  receiver = await TestReceiver.start();
  client = await usher.client(receiver.url);
  const { body } = await client.token();
  authorization = {
    basic: client.basic,
    bearer: `Bearer ${String(body.access_token)}`,
    internal: basic('internal', 'internal'),
  };
});
afterAll(() => void receiver.close());

const JSON_TYPE = { 'content-type': 'application/json' };
/** What zod, class-validator, TypeORM, the databases, Nest, Fastify, undici, BullMQ and V8 write into their messages. */
const LIBRARY_WORDING =
  /invalid input|expected|received|NaN|undefined|\[object|\bnull\b|in JSON at|unexpected (token|end)|forbidden prototype|FST_|UND_ERR|ECONN|Cannot (GET|POST|read)|QueryFailed|syntax|constraint|column|relation|Exception|should not|must be an? (instance|integer)|BullMQ|zod|typeorm|\bat .*\.js/i;

/** What is no JSON value of any field. */
const WRONG_VALUES = [null, true, 7, -1, 1.5, 1e300, '', 'x\0', '\ud800', [], [1], {}, { a: { b: 1 } }];
const WRONG_BODIES = ['', '{', '[', 'null', '7', '"x"', '[]', '{"a":1,"a":2}', '{"__proto__":1}', 'a=b', '\u{feff}{}'];
const WRONG_TYPES = ['', 'text/plain', 'text/json', 'application/x-www-form-urlencoded', 'multipart/form-data', 'x'];

/** REST operations without pages; paths lead to nothing. */
const OPERATIONS = operationsOf('sandbox').filter(({ page, security }) => !page && security.length > 0);
const addressOf = ({ path }: Operation): string => path.replace(/\{\w+\}/g, 'TW92aWVPcmRlcjpz');

const ask = (operation: Operation, headers: Record<string, string>, body?: unknown, query = ''): Promise<Answer> =>
  usher.request(
    operation.method.toUpperCase(),
    addressOf(operation) + query,
    { authorization: authorization[operation.security[0] ?? ''] ?? '', ...headers },
    body,
  );

/** Expects an error of the right form, in our own words. */
function expectOwnWords(operation: Operation, { status, headers, body }: Answer): void {
  if (status < 400) return;
  expect(status).toBeLessThan(500);
  const type = operation.oauth ? 'application/json' : 'application/problem+json';
  expect(headers.get('content-type')).toContain(type);
  const text = String(operation.oauth ? body.error_description : body.detail);
  expect(text).not.toMatch(LIBRARY_WORDING);
  if (operation.oauth) expect(text).toMatch(/^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/);
  for (const error of (body.errors ?? []) as Record<string, string>[]) {
    expect(Object.keys(error)).toEqual([expect.stringMatching(/^(pointer|parameter|header)$/), 'message']);
    expect(error.message).not.toMatch(LIBRARY_WORDING);
  }
}

describe.each(OPERATIONS.map((operation) => [operation.id, operation] as const))('%s', (_, operation) => {
  const fields = Object.keys((operation.body?.schema as { shape?: object } | undefined)?.shape ?? {});
  const parameters = Object.keys(operation.parameters?.query?.shape ?? {});

  test('says how to send credentials if there are none', async () => {
    const { status, headers, body } = await ask(operation, { authorization: '' });
    const text = String(operation.oauth ? body.error_description : body.detail);
    expect(status).toBe(401);
    expect(headers.get('www-authenticate')).toMatch(operation.security[0] === 'oauth2' ? /^Bearer / : /^Basic /);
    expect(text).toContain(operation.security[0] === 'oauth2' ? 'Authorization: Bearer <access_token>' : 'curl: -u ');
  });

  test('answers wrong values in its own words', async () => {
    for (const value of WRONG_VALUES) {
      const all = Object.fromEntries(fields.map((name) => [name, value]));
      if (operation.body) expectOwnWords(operation, await ask(operation, {}, { ...all, unknown: value }));
      const query = new URLSearchParams(Object.fromEntries(parameters.map((name) => [name, String(value)])));
      if (parameters.length > 0) expectOwnWords(operation, await ask(operation, {}, undefined, `?${query}&unknown=1`));
    }
    expectOwnWords(operation, await ask(operation, {}, undefined, '?limit=1&limit=2&__proto__=1&%5B%5D=x'));
  });

  test('answers wrong bodies and content types in its own words', async () => {
    if (!operation.body) return;
    for (const body of WRONG_BODIES) expectOwnWords(operation, await ask(operation, JSON_TYPE, body));
    for (const type of WRONG_TYPES) {
      const answer = await ask(operation, { 'content-type': type }, '{"grant_type":"client_credentials"}');
      expectOwnWords(operation, answer);
      const text = String(operation.oauth ? answer.body.error_description : answer.body.detail);
      expect(text).toContain('send Content-Type: application/json');
    }
    const compressed = await ask(operation, { ...JSON_TYPE, 'content-encoding': 'gzip' }, '{}');
    expect([compressed.status, JSON.stringify(compressed.body)]).toEqual([
      415,
      expect.stringContaining('without Content-Encoding'),
    ]);
  });

  test('takes an empty body as none, also from clients that name the type of a form for it', async () => {
    if (operation.method === 'get') return;
    const { status } = await ask(operation, { 'content-type': 'application/x-www-form-urlencoded' }, '');
    expect(status).not.toBe(415);
  });
});

test('one answer names every fault of a new order, its header included', async () => {
  const order = { currencyCode: 'ringgit', totalAmount: '42', bookingAmount: -1, notifyUrl: 'ftp://x', note: 'x' };
  const { status, body } = await client.call('POST', '/movie-orders', order);
  expect(status).toBe(400);
  expect(body.errors).toEqual([
    { pointer: '#/currencyCode', message: 'must be an ISO 4217 code like MYR' },
    { pointer: '#/totalAmount', message: expect.stringContaining('must be a whole number') },
    { pointer: '#/bookingAmount', message: 'must not be negative' },
    { pointer: '#/payableAmount', message: expect.stringMatching(/^is missing; it must be a whole number/) },
    { pointer: '#/note', message: expect.stringContaining('is not a known field; use one of currencyCode, ') },
    { pointer: '#/notifyUrl', message: expect.stringContaining('must be an absolute http or https URL') },
  ]);
});

test.each([
  ['', '#/', '""'],
  ['a/b', '#/a~1b', 'a/b'],
  ['a~1b', '#/a~01b', 'a~1b'],
])('an unknown field named %j is called by its name', async (name, pointer, shown) => {
  const { body } = await client.call('POST', '/movie-orders', { ...NEW_ORDER, [name]: 1 });
  expect(String(body.detail).split(';')[0]).toBe(`${shown}: is not a known field`);
  expect(body.errors).toMatchObject([{ pointer }]);
});

test('a field of a route without fields is answered with what to do', async () => {
  const { body } = await client.call('POST', '/sandbox/certifications', { notifyUrl: receiver.url });
  expect(body.detail).toBe('notifyUrl: is not known; this route takes no fields');
});

test('a path parameter that is too long is answered 414, and a malformed path 400', async () => {
  const paths = [`/movie-orders/${'a'.repeat(301)}`, '/movie-orders/%z', `/auth/${'a'.repeat(301)}`];
  const answers = await Promise.all(paths.map((path) => client.call('GET', path)));
  expect(answers.map(({ status, body }) => [status, body.detail ?? body.error_description])).toEqual([
    [414, 'the URL is too long'],
    [400, 'the URL is malformed'],
    [404, expect.any(String)],
  ]);
});

test('one answer names every fault of a query', async () => {
  const { body } = await client.call('GET', '/webhooks?status=DONE&limit=0&limi=1&createdAfter=now');
  expect(body.errors).toEqual([
    { parameter: 'status', message: 'must be one of PENDING, SUCCESS, FAILED' },
    { parameter: 'createdAfter', message: expect.stringContaining('must be an RFC 3339 time') },
    { parameter: 'limit', message: 'must be a whole number from 1 to 100' },
    { parameter: 'limi', message: 'is not a known parameter; did you mean limit?' },
  ]);
});

test.each([
  ['/auth/refresh', {}, 'grant_type is missing; refresh_token is missing'],
  [
    '/auth/refresh',
    { grant_type: 'refresh_token', client_id: 'x', client_secret: 'y' },
    'send the client credentials in the Authorization header only (client_secret_basic), not in the body; client_id differs from the Authorization header; refresh_token is missing',
  ],
  [
    '/auth/refresh',
    { grant_type: 'client_credentials' },
    'grant_type client_credentials is not supported here; use the token endpoint',
  ],
  ['/auth/token', { grant_type: 'authorization_code', code: 1 }, 'code must be a string; code_verifier is missing'],
  [
    '/auth/introspect',
    { client_secret: 'x', token: '' },
    'send the client credentials in the Authorization header only (client_secret_basic), not in the body; token is empty',
  ],
])('one answer names every fault at %s of %j', async (path, body, description) => {
  const answer = await usher.request('POST', path, { authorization: client.basic }, body);
  expect(answer).toMatchObject({ status: 400, body: { error_description: description } });
});

test.each([
  [
    'JSON that curl sends as a form',
    { 'content-type': 'application/x-www-form-urlencoded' },
    '{"grant_type":"x"}',
    'the body is JSON, but Content-Type is application/x-www-form-urlencoded; send Content-Type: application/json',
  ],
  [
    'a repeated parameter of a form',
    { 'content-type': 'application/x-www-form-urlencoded' },
    'scope=&scope=',
    'scope is given more than once',
  ],
  ['a repeated member', JSON_TYPE, '{"scope":"","a":{"scope":1},"scope":""}', 'scope is given more than once'],
  ['a repeated member with an odd name', JSON_TYPE, '{"\\u00e9":1,"\\u00e9":2}', 'a parameter is given more than once'],
  ['no body', JSON_TYPE, '', 'the body is missing; send a JSON object'],
])('the token endpoint explains %s', async (_, headers, text, description) => {
  const { status, body } = await usher.request(
    'POST',
    '/auth/token',
    { authorization: client.basic, ...headers },
    text,
  );
  expect([status, body.error_description]).toEqual([400, description]);
});

test.each([
  ['Basic credentials', () => client.basic, 'this path takes an access token, not the client id and secret'],
  ['a bare token', () => authorization.bearer!.slice(7), 'the Authorization header is not a Bearer token'],
  [
    'a refresh token',
    () => `Bearer usher_sandbox_refresh_${'x'.repeat(43)}`,
    'this is a refresh token; send the access_token',
  ],
])('a Bearer route explains %s', async (_, header, text) => {
  const { status, body } = await usher.request('GET', '/webhooks', { authorization: header() });
  expect([status, body.detail]).toEqual([401, expect.stringContaining(text)]);
});

test('credentials in the body are answered with the remedy, client_secret_basic, in JSON and in a form', async () => {
  const body = { grant_type: 'client_credentials', client_id: client.id, client_secret: client.secret };
  for (const type of ['application/json', 'application/x-www-form-urlencoded']) {
    const headers = { 'content-type': type };
    const answer = await usher.request('POST', '/auth/token', headers, new URLSearchParams(body).toString());
    expect(answer.status).toBe(401);
    expect(answer.body).toMatchObject({
      error: 'invalid_client',
      error_description: expect.stringMatching(/missing in the Authorization header.*client_secret_basic/),
    });
  }
  const { status, body: both } = await client.token(body);
  expect([status, both.error, both.error_description]).toEqual([
    400,
    'invalid_request',
    expect.stringContaining('in the Authorization header only (client_secret_basic)'),
  ]);
});

test.each([
  ['a token', () => authorization.bearer!, 'this path takes the client id and secret, not a token'],
  ['malformed credentials', () => 'Basic ???', 'the Authorization header has no client id and secret'],
  ['a wrong secret', () => basic(client.id, 'x'), 'the client id or the client secret is invalid'],
])('the token endpoint explains %s', async (_, header, text) => {
  const { status, body } = await usher.request('POST', '/auth/token', { authorization: header() }, {});
  expect([status, body.error_description]).toEqual([401, expect.stringContaining(text)]);
});
