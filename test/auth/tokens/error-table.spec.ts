import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { basic, type TestClient, TestUsher } from '../../support/usher.js';
import { encoded, ENCODINGS, expectOAuthError, FORM_TYPE, JSON_TYPE, post, ROUTES, dataSource } from './support.js';

let usher: TestUsher;
let client: TestClient;
let disabled: TestClient;
let refreshToken: string;

beforeAll(async () => {
  usher = await TestUsher.start({ AUTH_FAILURE_LIMIT: '100000/m' });
  client = await usher.client();
  disabled = await usher.client();
  await usher.clients.setDisabled(disabled.id, true);
  refreshToken = String((await client.token()).body.refresh_token);
});
afterAll(() => usher.stop());

/** The parameters of a valid request to each route. */
const valid = (path: string): Record<string, string> =>
  ({
    '/auth/token': { grant_type: 'client_credentials' },
    '/auth/refresh': { grant_type: 'refresh_token', refresh_token: refreshToken },
  })[path] ?? { token: 'garbage' };

const base64 = (text: string | Buffer): string => `Basic ${Buffer.from(text).toString('base64')}`;

const WRONG_CREDENTIALS: [string, (known: TestClient) => string][] = [
  ['an empty header', () => ''],
  ['Basic without credentials', () => 'Basic'],
  ['Basic followed by a space', () => 'Basic '],
  ['Bearer', () => 'Bearer usher_sandbox_access_x'],
  ['another scheme that contains Basic', ({ id, secret }) => `X-Basic ${btoa(`${id}:${secret}`)}`],
  ['text that is not Base64', () => 'Basic !!!'],
  ['Base64 in the URL-safe alphabet', () => 'Basic YWJj-_8='],
  ['Base64 without padding', () => 'Basic YTpiYg'],
  ['credentials without a colon', ({ id }) => base64(id)],
  ['an empty id', ({ secret }) => base64(`:${secret}`)],
  ['an empty secret', ({ id }) => base64(`${id}:`)],
  ['a secret with text after it', ({ id, secret }) => base64(`${id}:${secret}:x`)],
  ['a secret in lower case', ({ id, secret }) => base64(`${id}:${secret.toLowerCase()}`)],
  ['an id in lower case', ({ id, secret }) => base64(`${id.toLowerCase()}:${secret}`)],
  ['a NUL', ({ id, secret }) => base64(`${id}\0:${secret}`)],
  ['an encoded NUL', ({ id, secret }) => base64(`${id}%00:${secret}`)],
  ['an invalid percent encoding', ({ id }) => base64(`${id}:%zz`)],
  ['a secret with a non-ASCII character', ({ id }) => base64(`${id}:sécret`)],
  ['bytes that are not UTF-8', () => base64(Buffer.from([0x61, 0x3a, 0xff, 0xfe]))],
  ['a very long id', () => base64(`${'x'.repeat(5_000)}:y`)],
];

describe.each(ROUTES)('POST %s', (path) => {
  describe.each(ENCODINGS)('with a %s body', (encoding) => {
    test('answers 200 with no-store, and ignores unknown parameters', async () => {
      const answer = await post(client, path, encoded(encoding, { ...valid(path), audience: 'x', __proto__x: 'y' }));
      expect(answer.status).toBe(200);
      expect(answer.headers.get('cache-control')).toBe('no-store');
      expect(answer.headers.get('pragma')).toBe('no-cache');
    });

    test('accepts charset=utf-8 and the scheme "basic" in lower case', async () => {
      const { type, body } = encoded(encoding, valid(path));
      const lower = client.basic.replace('Basic', 'basic');
      expect((await post(client, path, { type: `${type}; charset=utf-8`, body }, lower)).status).toBe(200);
      expect((await post(client, path, { type: `${type.toUpperCase()};charset="UTF-8"`, body })).status).toBe(200);
    });

    test.each(WRONG_CREDENTIALS)('rejects %s with invalid_client', async (_, header) => {
      expectOAuthError(await post(client, path, encoded(encoding, valid(path)), header(client)), 401, 'invalid_client');
    });

    test('an unknown client, a wrong secret and a disabled client get the same response', async () => {
      const known = [basic(client.id, disabled.secret), basic('x'.repeat(20), client.secret), disabled.basic];
      const answers = await Promise.all(known.map((one) => post(client, path, encoded(encoding, valid(path)), one)));
      for (const answer of answers) expectOAuthError(answer, 401, 'invalid_client');
      expect(new Set(answers.map(({ body }) => JSON.stringify(body))).size).toBe(1);
    });

    test('authenticates the client before it reads the body', async () => {
      const { type } = encoded(encoding, {});
      const wrong = basic(client.id, 'wrong');
      expectOAuthError(await post(client, path, { type, body: '{%%%' }, wrong), 401, 'invalid_client');
      expectOAuthError(await post(client, path, { type: 'text/html', body: 'x' }, wrong), 401, 'invalid_client');
      expectOAuthError(await post(client, path, { type, body: 'x'.repeat(20_000) }, wrong), 401, 'invalid_client');
    });

    test('rejects client credentials in the body', async () => {
      const wrong: [string, string][] = [
        ['client_secret', client.secret],
        ['client_id', 'another'],
        ['client_assertion', 'x'],
      ];
      for (const [name, value] of wrong)
        expectOAuthError(
          await post(client, path, encoded(encoding, { ...valid(path), [name]: value })),
          400,
          'invalid_request',
        );
      expect((await post(client, path, encoded(encoding, { ...valid(path), client_id: client.id }))).status).toBe(200);
    });

    test('rejects a body larger than 16 KiB with 413', async () => {
      const answer = await post(client, path, encoded(encoding, { ...valid(path), pad: 'x'.repeat(16_384) }));
      expectOAuthError(answer, 413, 'invalid_request');
    });

    test('rejects other charsets, other media types, compressed bodies and a missing Content-Type with 415', async () => {
      const { type, body } = encoded(encoding, valid(path));
      const types = [`${type}; charset=utf-16`, `${type}; charset=latin1`, 'text/plain', 'application/xml', 'json', ''];
      for (const other of types)
        expectOAuthError(await post(client, path, { type: other, body }), 415, 'invalid_request');
      const gzip = { 'content-encoding': 'gzip' };
      expectOAuthError(await post(client, path, { type, body }, client.basic, gzip), 415, 'invalid_request');
      const untyped = await usher.request('POST', path, { authorization: client.basic });
      expectOAuthError(untyped, 415, 'invalid_request');
    });

    test.each([
      '',
      ' ',
      '\0',
      '\ufeff',
      '{',
      'null',
      '[]',
      '"x"',
      '7',
      'true',
      '[{"grant_type":"x"}]',
      '{"a":1}x',
      '%',
      '=',
      '&',
    ])('rejects the body %j with invalid_request', async (body) => {
      expectOAuthError(await post(client, path, { type: encoded(encoding, {}).type, body }), 400, 'invalid_request');
    });
  });

  test('rejects deeply nested JSON, and __proto__ in JSON has no effect', async () => {
    const deep = `${'['.repeat(8_000)}${']'.repeat(8_000)}`;
    expectOAuthError(await post(client, path, { type: JSON_TYPE, body: deep }), 400, 'invalid_request');
    const body = JSON.stringify({ x: 1 }).replace(
      '"x":1',
      `"__proto__":${JSON.stringify(valid(path))},"constructor":{}`,
    );
    expectOAuthError(await post(client, path, { type: JSON_TYPE, body }), 400, 'invalid_request');
    expect(({} as Record<string, unknown>).grant_type).toBeUndefined();
    const beside = JSON.stringify(valid(path)).replace('{', '{"__proto__":{"scope":"x"},');
    expect((await post(client, path, { type: JSON_TYPE, body: beside })).status).toBe(200);
  });

  test('rejects a duplicate form parameter', async () => {
    const body = new URLSearchParams(valid(path)).toString();
    expectOAuthError(await post(client, path, { type: FORM_TYPE, body: `${body}&${body}` }), 400, 'invalid_request');
    expectOAuthError(await post(client, path, { type: FORM_TYPE, body: `${body}&x=1&x=1` }), 400, 'invalid_request');
  });

  test.each(['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])('answers %s with 405 and Allow', async (method) => {
    const { status, headers } = await fetch(usher.running.url + path, { method });
    expect({ status, allow: headers.get('allow') }).toEqual({ status: 405, allow: 'POST' });
    expect(headers.get('cache-control')).toBe('no-store');
  });
});

describe.each(ENCODINGS)('grant parameters in a %s body', (encoding) => {
  const send = (path: string, parameters: Record<string, string>) => post(client, path, encoded(encoding, parameters));

  test.each(['/auth/token', '/auth/refresh'])('%s rejects a missing or empty grant_type', async (path) => {
    expectOAuthError(await send(path, { x: 'y' }), 400, 'invalid_request');
    expectOAuthError(await send(path, { grant_type: '' }), 400, 'invalid_request');
  });

  test.each([
    ['/auth/token', 'refresh_token'],
    ['/auth/refresh', 'client_credentials'],
    ['/auth/token', 'authorization_code'],
    ['/auth/token', 'password'],
    ['/auth/token', 'CLIENT_CREDENTIALS'],
    ['/auth/token', 'client_credentials '],
    ['/auth/refresh', '\0"\\é'],
  ])('%s rejects grant_type %s with unsupported_grant_type', async (path, grant_type) => {
    const answer = await send(path, { grant_type, refresh_token: refreshToken, code: 'x' });
    expectOAuthError(answer, 400, 'unsupported_grant_type');
  });

  test('a scope is rejected unless it is empty', async () => {
    expectOAuthError(await send('/auth/token', { ...valid('/auth/token'), scope: 'all' }), 400, 'invalid_scope');
    expect((await send('/auth/token', { ...valid('/auth/token'), scope: '' })).status).toBe(200);
  });

  test('a missing or empty refresh_token is an invalid request', async () => {
    expectOAuthError(await send('/auth/refresh', { grant_type: 'refresh_token' }), 400, 'invalid_request');
    const empty = { grant_type: 'refresh_token', refresh_token: '' };
    expectOAuthError(await send('/auth/refresh', empty), 400, 'invalid_request');
  });

  test('a missing or empty token is an invalid request', async () => {
    for (const path of ['/auth/revoke', '/auth/introspect']) {
      expectOAuthError(await send(path, { token_type_hint: 'access_token' }), 400, 'invalid_request');
      expectOAuthError(await send(path, { token: '' }), 400, 'invalid_request');
    }
  });

  test('a client can use only its own grant types', async () => {
    const limited = await usher.client();
    await dataSource(usher).query(`UPDATE usher_client SET grant_types = 'refresh_token' WHERE id = '${limited.id}'`);
    const answer = await post(limited, '/auth/token', encoded(encoding, valid('/auth/token')));
    expectOAuthError(answer, 400, 'unauthorized_client');
  });
});

test.each([1, null, true, [], {}, ['client_credentials']])(
  'a grant_type of %j is an invalid request',
  async (value) => {
    for (const path of ['/auth/token', '/auth/refresh']) {
      const body = JSON.stringify({ grant_type: value, refresh_token: refreshToken });
      expectOAuthError(await post(client, path, { type: JSON_TYPE, body }), 400, 'invalid_request');
    }
    const body = JSON.stringify({ grant_type: 'refresh_token', refresh_token: value, token: value });
    for (const path of ['/auth/refresh', '/auth/revoke', '/auth/introspect'])
      expectOAuthError(await post(client, path, { type: JSON_TYPE, body }), 400, 'invalid_request');
  },
);

test('a null parameter counts as omitted', async () => {
  const nulls = { scope: null, client_id: null, client_secret: null, refresh_token: null };
  expect((await client.token({ grant_type: 'client_credentials', ...nulls })).status).toBe(200);
});

test.each(['/auth', '/auth/', '/auth/nothing', '/auth/token/', '/auth/token/x', '/auth//token'])(
  '%s is answered 404',
  async (path) => expectOAuthError(await post(client, path, { type: JSON_TYPE, body: '{}' }), 404, 'invalid_request'),
);

test('percent-encoded OAuth paths also get OAuth errors', async () => {
  expectOAuthError(await usher.request('POST', '/%61uth/token', {}, {}), 401, 'invalid_client');
  expectOAuthError(await usher.request('GET', '/auth/%74oken', {}), 405, 'invalid_request');
  expectOAuthError(await usher.request('POST', '/auth/%zz', {}), 400, 'invalid_request');
});

test('form-encoded credentials are accepted', async () => {
  const secret = [...client.secret].map((letter) => `%${letter.charCodeAt(0).toString(16)}`).join('');
  const formEncoded = basic(client.id, secret);
  expect((await post(client, '/auth/token', encoded('form', valid('/auth/token')), formEncoded)).status).toBe(200);
});

test('only OAuth routes accept form bodies', async () => {
  const { body } = await client.token();
  const headers = { authorization: `Bearer ${String(body.access_token)}`, 'content-type': FORM_TYPE };
  expect((await usher.request('POST', '/movie-orders', headers, 'currencyCode=MYR')).status).toBe(415);
});
