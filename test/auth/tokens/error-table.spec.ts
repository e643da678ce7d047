import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { basic, type TestClient, TestUsher } from '../../support/usher.js';
import {
  encoded,
  ENCODINGS,
  expectOAuthError,
  FORM_TYPE,
  JSON_TYPE,
  post,
  ROUTES,
  validParameters,
} from './support.js';

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

const valid = (path: string): Record<string, string> => validParameters(path, refreshToken);

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

  test.each([
    ['twice', (body: string) => body.replace('{', '{"x":1,"x":1,')],
    ['twice with equal escapes', (body: string) => body.replace('{', '{"x":1,"\\u0078":2,')],
    ['twice in an inner object', (body: string) => body.replace('{', '{"x":[{"y":":","y":{}}],')],
  ])('rejects a JSON member that is given %s', async (_, repeat) => {
    const body = repeat(JSON.stringify(valid(path)));
    expectOAuthError(await post(client, path, { type: JSON_TYPE, body }), 400, 'invalid_request');
  });

  test('accepts JSON members of equal names in different objects, and names with quotes and colons', async () => {
    const more = { 'x:"y"': '\\":', a: { b: 1 }, c: [{ b: 1 }, { b: ':' }] };
    const body = JSON.stringify({ ...valid(path), ...more });
    expect((await post(client, path, { type: JSON_TYPE, body })).status).toBe(200);
  });

  test.each([JSON_TYPE, FORM_TYPE, 'text/plain'])('answers PUT with a body of the type %s with 405', async (type) => {
    const answer = await usher.request('PUT', path, { authorization: client.basic, 'content-type': type }, '{');
    expectOAuthError(answer, 405, 'invalid_request');
    expect(answer.headers.get('allow')).toBe('POST');
  });

  test.each(['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])('answers %s with 405 and Allow', async (method) => {
    const { status, headers } = await fetch(usher.running.url + path, { method });
    expect({ status, allow: headers.get('allow') }).toEqual({ status: 405, allow: 'POST' });
    expect(headers.get('cache-control')).toBe('no-store');
  });
});

test('form-encoded credentials are accepted', async () => {
  const secret = [...client.secret].map((letter) => `%${letter.charCodeAt(0).toString(16)}`).join('');
  const formEncoded = basic(client.id, secret);
  expect((await post(client, '/auth/token', encoded('form', valid('/auth/token')), formEncoded)).status).toBe(200);
});
