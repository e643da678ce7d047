import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { digestToken, generateToken } from '../../../src/auth/tokens/token.js';
import type { OpenApiDocument } from '../../../src/server/openapi/document.js';
import { type Answer, basic, OWN_CREDENTIALS, type TestClient, TestUsher } from '../../support/usher.js';
import { dataSource, encoded, ENCODINGS, exchange, expectOAuthError, firstAnswer, post } from './support.js';

const INTERNAL = basic('internal', 'internal');

let usher: TestUsher;
let client: TestClient;
let other: TestClient;

beforeAll(async () => {
  usher = await TestUsher.start(OWN_CREDENTIALS);
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
const isValid = async (access: string): Promise<boolean> =>
  (await usher.request('GET', '/movie-orders/x', { authorization: `Bearer ${access}` })).status === 404;

describe('revoking', () => {
  test.each(ENCODINGS)('an access token invalidates only this token, with a %s body', async (encoding) => {
    const { access, refresh } = await pair();
    const answer = await post(client, '/auth/revoke', encoded(encoding, { token: access }));
    expect([answer.status, answer.body.text]).toEqual([200, '']);
    expect(await introspect(client, access)).toEqual({ active: false });
    expect((await client.refresh(refresh)).status).toBe(200);
  });

  test('a refresh token also invalidates all access tokens of its grant, and no others', async () => {
    const [{ access, refresh }, another] = [await pair(), await pair()];
    const refreshed = String((await client.refresh(refresh)).body.access_token);
    expect((await revoke(client, refresh)).status).toBe(200);
    expectOAuthError(await client.refresh(refresh), 400, 'invalid_grant');
    for (const token of [access, refreshed]) expect(await isValid(token)).toBe(false);
    expect(await isValid(another.access)).toBe(true);
  });

  test('takes effect at once in this process, also for tokens that it has cached', async () => {
    const [one, two] = [await pair(), await pair()];
    const tokens = [one.access, two.access];
    for (const token of tokens) expect(await isValid(token)).toBe(true);
    await revoke(client, one.access);
    await revoke(client, two.refresh);
    for (const token of tokens) expect(await isValid(token)).toBe(false);
  });

  test.each(['access_token', 'refresh_token', 'saml', ''])('ignores token_type_hint %j', async (hint) => {
    const { access, refresh } = await pair();
    await revoke(client, access, { token_type_hint: hint });
    await revoke(client, refresh, { token_type_hint: hint });
    expect(await introspect(client, access)).toEqual({ active: false });
    expect(await introspect(client, refresh)).toEqual({ active: false });
  });

  test('a token of another client has no effect, and the response does not show this', async () => {
    const { access, refresh } = await pair();
    const refreshed = String((await client.refresh(refresh)).body.access_token);
    for (const token of [access, refreshed, refresh, generateToken('access', 'sandbox'), 'garbage', '\0']) {
      const answer = await revoke(other, token);
      expect([answer.status, answer.body.text]).toEqual([200, '']);
    }
    expect([await isValid(access), await isValid(refreshed)]).toEqual([true, true]);
    expect((await client.refresh(refresh)).status).toBe(200);
  });

  test('the same token several times is answered 200', async () => {
    const { refresh } = await pair();
    const answers = await Promise.all(Array.from({ length: 5 }, () => revoke(client, refresh)));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
  });

  test('a token during concurrent refreshes leaves no valid access token', async () => {
    const { refresh } = await pair();
    const refreshing = Array.from({ length: 10 }, () => client.refresh(refresh));
    const [answers] = await Promise.all([Promise.all(refreshing), revoke(client, refresh)]);
    expect(answers.every(({ status }) => status === 200 || status === 400)).toBe(true);
    const issued = answers.filter(({ status }) => status === 200).map(({ body }) => String(body.access_token));
    for (const access of issued) expect(await isValid(access)).toBe(false);
  });
});

describe('introspecting', () => {
  test('shows a client its own tokens, with the fields of RFC 7662', async () => {
    const before = Math.floor(Date.now() / 1_000) - 5;
    const { access, refresh } = await pair();
    const anyNumber = expect.any(Number);
    const seen = await introspect(client, access);
    expect(seen).toEqual({ active: true, client_id: client.id, token_type: 'Bearer', exp: anyNumber, iat: anyNumber });
    expect(Number(seen.iat)).toBeGreaterThanOrEqual(before);
    expect(Number(seen.exp) - Number(seen.iat)).toBe(5_184_000);
    const seenRefresh = await introspect(client, refresh);
    expect(seenRefresh).toEqual({ active: true, client_id: client.id, exp: anyNumber, iat: anyNumber });
    expect(Number(seenRefresh.exp) - Number(seenRefresh.iat)).toBe(31_536_000);
  });

  test('shows the expiry of a refresh token that the last token response promised', async () => {
    const { refresh } = await pair();
    const MINUTE_MS = 60_000;
    const expiry = async (): Promise<number> => Number((await introspect(client, refresh)).exp);
    const issued = await expiry();
    // As if the grant were half an hour old: a refresh promises more, although it does not write the stored expiry.
    await dataSource(usher).query(
      `UPDATE usher_grant SET expires_at = expires_at - ${30 * MINUTE_MS} WHERE refresh_digest = '${digestToken(refresh)}'`,
    );
    await dataSource(usher).query(
      `UPDATE usher_grant SET created_at = created_at - ${30 * MINUTE_MS} WHERE client_id = '${client.id}'`,
    );
    expect(await expiry()).toBe(issued - 30 * 60);
    await client.refresh(refresh);
    expect(await expiry()).toBeGreaterThanOrEqual(issued);
    expect(await expiry()).toBeLessThan(issued + 30 * 60);
    await dataSource(usher).query(`DELETE FROM usher_access_token WHERE client_id = '${client.id}'`);
    expect(await expiry()).toBe(issued - 30 * 60);
  });

  test('reports a refresh token as inactive once its promised expiry is over', async () => {
    const { refresh } = await pair();
    const LIFETIME_MS = 31_536_000_000;
    await dataSource(usher).query(
      `UPDATE usher_grant SET expires_at = expires_at - ${LIFETIME_MS} WHERE refresh_digest = '${digestToken(refresh)}'`,
    );
    await dataSource(usher).query(
      `UPDATE usher_grant SET created_at = created_at - ${LIFETIME_MS} WHERE client_id = '${client.id}'`,
    );
    expect(await introspect(client, refresh)).toEqual({ active: false });
  });

  test('reports tokens of other clients, unknown and malformed tokens as inactive', async () => {
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

  test('shows the tokens of all clients to the internal credential, only on this route', async () => {
    const { access } = await pair(other);
    for (const authorization of [INTERNAL, basic('%69nternal', 'intern%61l')])
      expect(await introspect(client, access, authorization)).toMatchObject({ active: true, client_id: other.id });
    const wrong = await post(client, '/auth/introspect', encoded('form', { token: access }), basic('internal', 'x'));
    expectOAuthError(wrong, 401, 'invalid_client');
    const elsewhere = await post(client, '/auth/revoke', encoded('form', { token: access }), INTERNAL);
    expectOAuthError(elsewhere, 401, 'invalid_client');
  });

  test('reports tokens as inactive once all tokens of the client are revoked', async () => {
    const one = await usher.client();
    const { access, refresh } = await pair(one);
    await usher.clients.revokeTokens(one.id);
    for (const token of [access, refresh]) expect(await introspect(one, token)).toEqual({ active: false });
  });

  test('reports an expired token and a token of a disabled client as inactive', async () => {
    const one = await usher.client();
    const { access, refresh } = await pair(one);
    await dataSource(usher).query(
      `UPDATE usher_grant SET access_expires_at = 1000 WHERE access_digest = '${digestToken(access)}'`,
    );
    expect(await introspect(one, access)).toEqual({ active: false });
    await usher.clients.setDisabled(one.id, true);
    expect(await introspect(one, refresh, INTERNAL)).toEqual({ active: false });
  });
});

describe('the server metadata', () => {
  const PATH = '/.well-known/oauth-authorization-server';

  test('names the endpoints at the address of the request', async () => {
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
  ])('for Host %s has the issuer %s', async (host, issuer) => {
    expect((await metadataForHost(host)).body).toMatchObject({ issuer });
  });

  test.each(['a/b', 'user@usher.example', 'usher.example?x', 'a b', 'usher.example:port', ''])(
    'rejects Host %j',
    async (host) => expect((await metadataForHost(host)).status).toBe(400),
  );

  const metadataForHost = async (host: string): Promise<Answer> =>
    firstAnswer(
      await exchange(usher.running.url, `GET ${PATH} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`),
    );

  test('behind a trusted proxy uses the forwarded host and scheme, but only http and https', async () => {
    const behind = await TestUsher.start({ ...OWN_CREDENTIALS, TRUST_PROXY: '1' });
    const metadataForProto = (proto: string): Promise<Answer> =>
      behind.request('GET', PATH, { 'x-forwarded-host': 'auth.example.com:443', 'x-forwarded-proto': proto });
    expect((await metadataForProto('https')).body).toMatchObject({ issuer: 'https://auth.example.com' });
    for (const proto of ['javascript', 'https://elsewhere.example/'])
      expect((await metadataForProto(proto)).status).toBe(400);
    await behind.stop();
  });

  test('uses USHER_AUTH_URL if it is set, and its path goes behind the well-known one (RFC 8414 section 3.1)', async () => {
    const published = await TestUsher.start({ USHER_AUTH_URL: 'https://auth.example.com/v1/' });
    const [metadata, plain, openapi] = await Promise.all(
      [`${PATH}/v1`, PATH, '/docs/openapi.json'].map((path) => published.request('GET', path, {})),
    );
    await published.stop();
    expect(metadata?.body).toMatchObject({
      issuer: 'https://auth.example.com/v1',
      token_endpoint: 'https://auth.example.com/v1/auth/token',
    });
    expect(plain?.status).toBe(404);
    const { paths } = openapi?.body as unknown as OpenApiDocument;
    expect(paths[`${PATH}/v1`]?.get).toMatchObject({ servers: [{ url: 'https://auth.example.com' }] });
  });
});
