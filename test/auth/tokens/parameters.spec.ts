import { beforeAll, describe, expect, test } from '@jest/globals';
import { type TestClient, TestUsher } from '../../support/usher.js';
import { encoded, ENCODINGS, expectOAuthError, JSON_TYPE, post, dataSource, validParameters } from './support.js';

let usher: TestUsher;
let client: TestClient;
let refreshToken: string;

beforeAll(async () => {
  usher = await TestUsher.shared();
  client = await usher.client();
  refreshToken = String((await client.token()).body.refresh_token);
});

const valid = (path: string): Record<string, string> => validParameters(path, refreshToken);

describe.each(ENCODINGS)('grant parameters in a %s body', (encoding) => {
  const send = (path: string, parameters: Record<string, string>) => post(client, path, encoded(encoding, parameters));

  test.each(['/auth/token', '/auth/refresh'])('%s rejects a missing or empty grant_type', async (path) => {
    expectOAuthError(await send(path, { x: 'y' }), 400, 'invalid_request');
    expectOAuthError(await send(path, { grant_type: '' }), 400, 'invalid_request');
  });

  test.each([
    ['/auth/refresh', 'client_credentials'],
    ['/auth/refresh', 'refresh_token '],
    ['/auth/token', 'password'],
    ['/auth/token', 'constructor'],
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

test.each<unknown>([1, null, true, [], {}, { toString: 1 }, ['client_credentials']])(
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
