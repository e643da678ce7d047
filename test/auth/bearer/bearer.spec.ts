import { afterEach, beforeAll, expect, test } from '@jest/globals';
import type { DataSource } from 'typeorm';
import { AccessTokens } from '../../../src/auth/bearer/access-tokens.js';
import { AccessToken, Grant } from '../../../src/auth/tokens/grant.entity.js';
import { digestToken, generateToken } from '../../../src/auth/tokens/token.js';
import { eventually } from '../../support/eventually.js';
import { statementsFromNowOn } from '../../support/statements.js';
import { type TestClient, TestUsher } from '../../support/usher.js';

const NOTIFY_URL = 'http://127.0.0.1:9009/notify';

let usher: TestUsher;
let dataSource: DataSource;
let statements: string[];

beforeAll(async () => {
  usher = await TestUsher.shared();
  dataSource = usher.dataSource;
  statements = statementsFromNowOn(dataSource);
});
afterEach(() => {
  statements.length = 0;
});

async function tokenOf(client: TestClient): Promise<string> {
  return String((await client.token()).body.access_token);
}

const grantOf = (firstToken: string): Promise<Grant> =>
  dataSource.manager.findOneByOrFail(Grant, { accessDigest: digestToken(firstToken) });

/** 404 if the token is accepted (the order does not exist), otherwise 401. */
const statusOf = async (token: string): Promise<number> =>
  (await usher.request('GET', '/movie-orders/none', { authorization: `Bearer ${token}` })).status;

const lookups = (): number => statements.filter((sql) => sql.includes('usher_access_token')).length;

test('five requests with a valid token cause one database query', async () => {
  const token = await tokenOf(await usher.client(NOTIFY_URL));
  statements.length = 0;
  for (let use = 0; use < 5; use += 1) expect(await statusOf(token)).toBe(404);
  expect(lookups()).toBe(1);
});

test('an invalid token is not cached: it is accepted as soon as its row exists', async () => {
  const token = await tokenOf(await usher.client(NOTIFY_URL));
  const { id, accessDigest } = await grantOf(token);
  await dataSource.manager.update(Grant, { id }, { accessDigest: null });
  expect(await statusOf(token)).toBe(401);
  await dataSource.manager.update(Grant, { id }, { accessDigest });
  expect(await statusOf(token)).toBe(404);
});

test('a cached token is rejected after its client is disabled', async () => {
  const client = await usher.client(NOTIFY_URL);
  const token = await tokenOf(client);
  expect(await statusOf(token)).toBe(404);
  await usher.clients.setDisabled(client.id, true);
  await eventually('the token is rejected', async () => (await statusOf(token)) === 401);
});

test('forget() takes effect immediately in this process', async () => {
  const tokens = usher.running.app.get(AccessTokens, { strict: false });
  const token = await tokenOf(await usher.client(NOTIFY_URL));
  expect(await statusOf(token)).toBe(404);
  await dataSource.manager.delete(Grant, { id: (await grantOf(token)).id });
  tokens.forget(token);
  expect(await statusOf(token)).toBe(401);
});

test('forgetGrants() forgets all access tokens of a grant', async () => {
  const tokens = usher.running.app.get(AccessTokens, { strict: false });
  const client = await usher.client(NOTIFY_URL);
  const { body } = await client.token();
  const issued = [body.access_token, (await client.refresh(body.refresh_token)).body.access_token].map(String);
  for (const token of issued) expect(await statusOf(token)).toBe(404);
  const { id } = await grantOf(issued[0]!);
  await dataSource.manager.delete(AccessToken, { grantId: id });
  await dataSource.manager.delete(Grant, { id });
  tokens.forgetGrants([id]);
  for (const token of issued) expect(await statusOf(token)).toBe(401);
});

test('a token that is forgotten during its lookup is not cached', async () => {
  const tokens = usher.running.app.get(AccessTokens, { strict: false });
  const token = await tokenOf(await usher.client(NOTIFY_URL));
  const lookUp = tokens.holderOf(token);
  tokens.forget(token);
  await lookUp;
  statements.length = 0;
  await tokens.holderOf(token);
  expect(lookups()).toBe(1);
});

test('an access token of a refresh is valid until it expires, even if its grant was deleted', async () => {
  const client = await usher.client(NOTIFY_URL);
  const token = String((await client.refresh((await client.token()).body.refresh_token)).body.access_token);
  const { grantId } = await dataSource.manager.findOneByOrFail(AccessToken, { digest: digestToken(token) });
  await dataSource.manager.delete(Grant, { id: grantId });
  expect(await statusOf(token)).toBe(404);
});

test.each(['the first token of a grant', 'a token of a refresh'])(
  '%s is not cached after it expires',
  async (which) => {
    const client = await usher.client(NOTIFY_URL);
    const { body } = await client.token();
    const isFirst = which.startsWith('the first');
    const token = String((isFirst ? body : (await client.refresh(body.refresh_token)).body).access_token);
    const soon = (column: string) => () => `${column} - 5184000000 + 500`;
    const digest = digestToken(token);
    if (isFirst)
      await dataSource.manager.update(Grant, { accessDigest: digest }, { accessExpiresAt: soon('access_expires_at') });
    else await dataSource.manager.update(AccessToken, { digest }, { expiresAt: soon('expires_at') });
    expect(await statusOf(token)).toBe(404);
    const headers = { authorization: client.basic };
    const introspect = () => usher.request('POST', '/auth/introspect', headers, { token });
    // It reads the database, so this does not wait for the end of the cache time.
    await eventually('the token has expired', async () => (await introspect()).body.active === false);
    expect(await statusOf(token)).toBe(401);
  },
);

test('a new Notify URL applies immediately to a client with a cached token', async () => {
  const client = await usher.client(null);
  expect(await statusOf(await tokenOf(client))).toBe(404);
  expect((await client.call('GET', '/movie-orders/none')).status).toBe(404);
  await usher.clients.setNotifyUrl(client.id, NOTIFY_URL);
  expect(await client.order()).toBeTruthy();
});

test('a token of the other environment is rejected with a message that names both environments', async () => {
  const authorization = `Bearer ${generateToken('access', 'production')}`;
  const { status, headers, body } = await usher.request('GET', '/webhooks', { authorization });
  expect(status).toBe(401);
  const message = 'this token is for the production environment; use a sandbox token';
  expect(body.detail).toBe(message);
  expect(headers.get('www-authenticate')).toContain(`error="invalid_token", error_description="${message}"`);
});
