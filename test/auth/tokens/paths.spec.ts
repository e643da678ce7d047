import { beforeAll, expect, test } from '@jest/globals';
import { type TestClient, TestUsher } from '../../support/usher.js';
import { expectOAuthError, FORM_TYPE, JSON_TYPE, post } from './support.js';

let usher: TestUsher;
let client: TestClient;

beforeAll(async () => {
  usher = await TestUsher.shared();
  client = await usher.client();
});

test.each(['/auth', '/auth/', '/auth/nothing', '/auth/token/', '/auth/token/x', '/auth//token'])(
  '%s is answered 404',
  async (path) => expectOAuthError(await post(client, path, { type: JSON_TYPE, body: '{}' }), 404, 'invalid_request'),
);

test('a slash too many at the end of a path is named', async () => {
  const advice = expect.stringContaining('leave out the slash at its end');
  const token = await post(client, '/auth/token/', { type: JSON_TYPE, body: '{}' });
  expect([token.status, token.body.error_description]).toEqual([404, advice]);
  const list = await client.call('GET', '/movie-orders/');
  expect([list.status, list.body.detail]).toEqual([404, advice]);
  expect((await client.call('GET', '/nothing/')).body.detail).toBe('this path does not exist');
});

test('percent-encoded OAuth paths also get OAuth errors', async () => {
  expectOAuthError(await usher.request('POST', '/%61uth/token', {}, {}), 401, 'invalid_client');
  expectOAuthError(await usher.request('GET', '/auth/%74oken', {}), 405, 'invalid_request');
  expectOAuthError(await usher.request('POST', '/auth/%zz', {}), 400, 'invalid_request');
});

test('only OAuth routes accept form bodies', async () => {
  const { body } = await client.token();
  const headers = { authorization: `Bearer ${String(body.access_token)}`, 'content-type': FORM_TYPE };
  expect((await usher.request('POST', '/movie-orders', headers, 'currencyCode=MYR')).status).toBe(415);
});
