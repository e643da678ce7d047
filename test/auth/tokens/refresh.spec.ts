import { beforeAll, describe, expect, test } from '@jest/globals';
import { digestToken, generateToken } from '../../../src/auth/tokens/token.js';
import { type TestClient, TestUsher } from '../../support/usher.js';
import { dataSource, expectOAuthError } from './support.js';

const HOUR_MS = 3_600_000;
const LIFETIME_MS = 31_536_000_000;

let usher: TestUsher;
let client: TestClient;
let token: string;

beforeAll(async () => {
  usher = await TestUsher.shared();
  client = await usher.client();
});

async function freshToken(): Promise<string> {
  token = String((await client.token()).body.refresh_token);
  return token;
}

/** Simulates elapsed time by moving the token's expiry closer. */
const age = (ms: number): Promise<unknown> =>
  dataSource(usher).query(
    `UPDATE usher_grant SET expires_at = expires_at - ${ms} WHERE refresh_digest = '${digestToken(token)}'`,
  );

async function expiry(): Promise<number> {
  const rows = await dataSource(usher).query<{ expires_at: string }[]>(
    `SELECT expires_at FROM usher_grant WHERE refresh_digest = '${digestToken(token)}'`,
  );
  return Number(rows[0]?.expires_at);
}

describe('a refresh token', () => {
  test('stays valid after 50 concurrent refreshes, and each refresh returns a different access token', async () => {
    await freshToken();
    await age(2 * HOUR_MS);
    const answers = await Promise.all(Array.from({ length: 50 }, () => client.refresh(token)));
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(new Set(answers.map(({ body }) => body.access_token)).size).toBe(50);
    expect(new Set(answers.map(({ body }) => body.refresh_token))).toEqual(new Set([token]));
  });

  test('is exchanged for a full token response, and earlier access tokens stay valid', async () => {
    const first = (await client.token()).body;
    const { body } = await client.refresh(first.refresh_token);
    expect(body).toEqual({
      access_token: expect.stringMatching(/^usher_sandbox_access_[A-Za-z0-9]{43}$/),
      expires_in: 5_184_000,
      refresh_token: first.refresh_token,
      refresh_token_expires_in: 31_536_000,
      token_type: 'Bearer',
    });
    const orders = { authorization: `Bearer ${String(first.access_token)}` };
    expect((await usher.request('GET', '/movie-orders/x', orders)).status).toBe(404);
  });

  test('is accepted at the token endpoint too, as standard clients send it (RFC 6749 section 6)', async () => {
    await freshToken();
    const { status, body } = await client.token({ grant_type: 'refresh_token', refresh_token: token });
    expect(status).toBe(200);
    expect(Object.keys(body)).toEqual(Object.keys((await client.refresh(token)).body));
    expect(body).toMatchObject({ refresh_token: token, refresh_token_expires_in: 31_536_000, token_type: 'Bearer' });
    expectOAuthError(await client.token({ grant_type: 'refresh_token' }), 400, 'invalid_request');
    expectOAuthError(await client.token({ grant_type: 'refresh_token', refresh_token: 'x' }), 400, 'invalid_grant');
  });

  test('gets its full lifetime at each use, but the database is updated at most once an hour', async () => {
    await freshToken();
    const issued = await expiry();
    await age(HOUR_MS - 60_000);
    await client.refresh(token);
    expect(await expiry()).toBe(issued - HOUR_MS + 60_000);
    expect(await expiry()).toBeGreaterThanOrEqual(Date.now() + LIFETIME_MS - 60_000);
    await age(120_000);
    await client.refresh(token);
    expect(await expiry()).toBeGreaterThanOrEqual(issued);
  });

  test('is extended even on its last day', async () => {
    await freshToken();
    const issued = await expiry();
    await age(LIFETIME_MS);
    expect((await client.refresh(token)).status).toBe(200);
    expect(await expiry()).toBeGreaterThanOrEqual(issued);
  });
});

test('expired, revoked, foreign, unknown and malformed refresh tokens get the same response', async () => {
  const other = await usher.client();
  const foreign = (await other.token()).body;
  const expired = await freshToken();
  await age(LIFETIME_MS + HOUR_MS + 1_000);
  const revoked = String((await client.token()).body.refresh_token);
  await usher.request('POST', '/auth/revoke', { authorization: client.basic }, { token: revoked });
  const invalid = [expired, revoked, foreign.refresh_token, generateToken('refresh', 'sandbox')];
  const answers = await Promise.all([...invalid, 'garbage', '\0', 'é'].map((one) => client.refresh(one)));
  for (const answer of answers) expectOAuthError(answer, 400, 'invalid_grant');
  expect(new Set(answers.map(({ body }) => JSON.stringify(body))).size).toBe(1);
});

test('a refresh token of the other environment is rejected with a message that names both environments', async () => {
  const answer = await client.refresh(generateToken('refresh', 'production'));
  expectOAuthError(answer, 400, 'invalid_grant');
  expect(answer.body.error_description).toMatch(/production environment; use a sandbox token/);
});

test.each([
  ['access', 'an access token'],
  ['code', 'a code'],
] as const)(
  'a token of the kind %s is named, valid or not, because its prefix shows what it is',
  async (kind, name) => {
    const valid = String((await client.token()).body.access_token);
    for (const token of [generateToken(kind, 'sandbox'), ...(kind === 'access' ? [valid] : [])]) {
      const answer = await client.refresh(token);
      expectOAuthError(answer, 400, 'invalid_grant');
      expect(answer.body.error_description).toBe(`this is ${name}; send the refresh_token`);
    }
  },
);

test('a disabled client cannot get tokens, and can again after it is enabled', async () => {
  const one = await usher.client();
  const { body } = await one.token();
  await usher.clients.setDisabled(one.id, true);
  expectOAuthError(await one.token(), 401, 'invalid_client');
  expectOAuthError(await one.refresh(body.refresh_token), 401, 'invalid_client');
  await usher.clients.setDisabled(one.id, false);
  expectOAuthError(await one.refresh(body.refresh_token), 400, 'invalid_grant');
  expect((await one.token()).status).toBe(200);
});
