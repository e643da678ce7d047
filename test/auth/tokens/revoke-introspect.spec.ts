import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { digestToken, generateToken } from '../../../src/auth/tokens/token.js';
import { type Answer, basic, type TestClient, TestUsher } from '../../support/usher.js';
import { dataSource, encoded, ENCODINGS, exchange, expectOAuthError, firstAnswer, post } from './support.js';

const INTERNAL = basic('internal', 'internal');

let usher: TestUsher;
let client: TestClient;
let other: TestClient;

beforeAll(async () => {
  usher = await TestUsher.start();
  [client, other] = [await usher.client(), await usher.client()];
});
afterAll(() => usher.stop());

interface Pair {
  access: string;
  refresh: string;
}

async function pair(of = client): Promise<Pair> {
  const { body } = await of.token();
  return { access: String(body.access_token), refresh: String(body.refresh_token) };
}

const revoke = (by: TestClient, token: string, more = {}): Promise<Answer> =>
  post(by, '/auth/revoke', encoded('form', { token, ...more }));
const introspect = async (by: TestClient, token: string, authorization = by.basic): Promise<Answer['body']> =>
  (await post(by, '/auth/introspect', encoded('form', { token }), authorization)).body;
const isGood = async (access: string): Promise<boolean> =>
  (await usher.request('GET', '/movie-orders/x', { authorization: `Bearer ${access}` })).status === 404;

describe('revoking', () => {
  test.each(ENCODINGS)('an access token ends it and nothing else, with a %s body', async (encoding) => {
    const { access, refresh } = await pair();
    const answer = await post(client, '/auth/revoke', encoded(encoding, { token: access }));
    expect([answer.status, answer.body.text]).toEqual([200, '']);
    expect(await introspect(client, access)).toEqual({ active: false });
    expect((await client.refresh(refresh)).status).toBe(200);
  });

  test('a refresh token ends its access tokens, the refreshed ones included, and no others', async () => {
    const [{ access, refresh }, another] = [await pair(), await pair()];
    const refreshed = String((await client.refresh(refresh)).body.access_token);
    expect((await revoke(client, refresh)).status).toBe(200);
    expectOAuthError(await client.refresh(refresh), 400, 'invalid_grant');
    for (const token of [access, refreshed]) expect(await isGood(token)).toBe(false);
    expect(await isGood(another.access)).toBe(true);
  });

  test.each(['access_token', 'refresh_token', 'saml', ''])('does not mind token_type_hint %j', async (hint) => {
    const { access, refresh } = await pair();
    await revoke(client, access, { token_type_hint: hint });
    await revoke(client, refresh, { token_type_hint: hint });
    expect(await introspect(client, access)).toEqual({ active: false });
    expect(await introspect(client, refresh)).toEqual({ active: false });
  });

  test('leaves the tokens of another client alone, and says nothing about it', async () => {
    const { access, refresh } = await pair();
    for (const token of [access, refresh, generateToken('access', 'sandbox'), 'garbage', '\0']) {
      const answer = await revoke(other, token);
      expect([answer.status, answer.body.text]).toEqual([200, '']);
    }
    expect(await isGood(access)).toBe(true);
    expect((await client.refresh(refresh)).status).toBe(200);
  });

  test('twice is as good as once', async () => {
    const { refresh } = await pair();
    const answers = await Promise.all(Array.from({ length: 5 }, () => revoke(client, refresh)));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
  });

  test('while the token is being refreshed leaves no good access token behind', async () => {
    const { refresh } = await pair();
    const refreshing = Array.from({ length: 10 }, () => client.refresh(refresh));
    const [answers] = await Promise.all([Promise.all(refreshing), revoke(client, refresh)]);
    expect(answers.every(({ status }) => status === 200 || status === 400)).toBe(true);
    const issued = answers.filter(({ status }) => status === 200).map(({ body }) => String(body.access_token));
    for (const access of issued) expect(await isGood(access)).toBe(false);
  });
});

describe('introspecting', () => {
  test('tells a client of its own tokens what RFC 7662 has a member for', async () => {
    const before = Math.floor(Date.now() / 1_000) - 5;
    const { access, refresh } = await pair();
    const whole = expect.any(Number);
    const seen = await introspect(client, access);
    expect(seen).toEqual({ active: true, client_id: client.id, token_type: 'Bearer', exp: whole, iat: whole });
    expect(Number(seen.iat)).toBeGreaterThanOrEqual(before);
    expect(Number(seen.exp) - Number(seen.iat)).toBe(5_184_000);
    expect(await introspect(client, refresh)).toEqual({ active: true, client_id: client.id, exp: whole, iat: whole });
  });

  test('tells nothing of another client’s tokens, of unknown ones and of garbage', async () => {
    const { access, refresh } = await pair(other);
    for (const token of [
      access,
      refresh,
      generateToken('access', 'sandbox'),
      generateToken('access', 'production'),
      'x',
    ])
      expect(await introspect(client, token)).toEqual({ active: false });
  });

  test('tells the internal credential of everybody’s tokens, on this route alone', async () => {
    const { access } = await pair(other);
    for (const authorization of [INTERNAL, basic('%69nternal', 'intern%61l')])
      expect(await introspect(client, access, authorization)).toMatchObject({ active: true, client_id: other.id });
    const wrong = await post(client, '/auth/introspect', encoded('form', { token: access }), basic('internal', 'x'));
    expectOAuthError(wrong, 401, 'invalid_client');
    const elsewhere = await post(client, '/auth/revoke', encoded('form', { token: access }), INTERNAL);
    expectOAuthError(elsewhere, 401, 'invalid_client');
  });

  test('sees that a token is expired, and that its client is disabled', async () => {
    const one = await usher.client();
    const { access, refresh } = await pair(one);
    await dataSource(usher).query(
      `UPDATE usher_access_token SET expires_at = 1000 WHERE digest = '${digestToken(access)}'`,
    );
    expect(await introspect(one, access)).toEqual({ active: false });
    await usher.clients.setDisabled(one.id, true);
    expect(await introspect(one, refresh, INTERNAL)).toEqual({ active: false });
  });
});

describe('the metadata', () => {
  const PATH = '/.well-known/oauth-authorization-server';

  test('names the endpoints at the address that was asked', async () => {
    const { url } = usher.running;
    const { status, body } = await usher.request('GET', PATH, {});
    expect(status).toBe(200);
    expect(body).toMatchObject({
      issuer: url,
      token_endpoint: `${url}/auth/token`,
      revocation_endpoint: `${url}/auth/revoke`,
      introspection_endpoint: `${url}/auth/introspect`,
      grant_types_supported: ['client_credentials', 'refresh_token'],
      token_endpoint_auth_methods_supported: ['client_secret_basic'],
      response_types_supported: [],
    });
  });

  test.each([
    ['usher.example:80', 'http://usher.example'],
    ['USHER.example:8080', 'http://usher.example:8080'],
    ['[0:0:0:0:0:0:0:1]:3000', 'http://[::1]:3000'],
  ])('of a request to Host %s has the issuer %s', async (host, issuer) => {
    expect((await askedAt(host)).body).toMatchObject({ issuer });
  });

  test.each(['a/b', 'user@usher.example', 'usher.example?x', 'a b', 'usher.example:port', ''])(
    'believes no Host %j',
    async (host) => expect((await askedAt(host)).status).toBe(400),
  );

  const askedAt = async (host: string): Promise<Answer> =>
    firstAnswer(
      await exchange(usher.running.url, `GET ${PATH} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`),
    );

  test("behind a proxy names what that was asked for, and no other scheme than HTTP's", async () => {
    const behind = await TestUsher.start({ TRUST_PROXY: '1' });
    const asked = (proto: string): Promise<Answer> =>
      behind.request('GET', PATH, { 'x-forwarded-host': 'auth.example.com:443', 'x-forwarded-proto': proto });
    expect((await asked('https')).body).toMatchObject({ issuer: 'https://auth.example.com' });
    for (const proto of ['javascript', 'https://elsewhere.example/']) expect((await asked(proto)).status).toBe(400);
    await behind.stop();
  });

  test('names the public address where that is set', async () => {
    const published = await TestUsher.start({ USHER_AUTH_URL: 'https://auth.example.com/v1/' });
    const { body } = await published.request('GET', PATH, {});
    expect(body).toMatchObject({
      issuer: 'https://auth.example.com/v1',
      token_endpoint: 'https://auth.example.com/v1/auth/token',
    });
    await published.stop();
  });
});
