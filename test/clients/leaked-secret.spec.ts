import { beforeAll, describe, expect, test } from '@jest/globals';
import { TokenService } from '../../src/auth/tokens/token.service.js';
import { eventually } from '../support/eventually.js';
import { usher as run, usherJson } from '../support/process.js';
import { TestClient, TestUsher } from '../support/usher.js';

let usher: TestUsher;
beforeAll(async () => {
  usher = await TestUsher.shared();
});

interface Pair {
  access: string;
  refresh: string;
}

async function pair(client: TestClient): Promise<Pair> {
  const { body } = await client.token();
  return { access: String(body.access_token), refresh: String(body.refresh_token) };
}

const isAccepted = async (access: string): Promise<boolean> =>
  (await usher.request('GET', '/movie-orders/x', { authorization: `Bearer ${access}` })).status === 404;

const isActive = async (client: TestClient, token: string): Promise<unknown> =>
  (await usher.request('POST', '/auth/introspect', { authorization: client.basic }, { token })).body.active;

/** Every process may accept a token for less than 5 s more, because it is cached. */
async function expectRevoked(client: TestClient, { access, refresh }: Pair): Promise<void> {
  expect((await client.refresh(refresh)).body.error).toBe('invalid_grant');
  expect([await isActive(client, access), await isActive(client, refresh)]).toEqual([false, false]);
  await eventually('the access token is rejected', async () => !(await isAccepted(access)));
}

describe('client revoke-tokens', () => {
  test('revokes every token of this client and no other, and the client can request new ones', async () => {
    const [client, other] = [await usher.client(), await usher.client()];
    const [tokens, others] = [[await pair(client), await pair(client)], await pair(other)];
    for (const { access } of tokens) expect(await isAccepted(access)).toBe(true);
    expect(await usherJson(usher.settings, ['client', 'revoke-tokens', client.id])).toEqual({ client_id: client.id });
    for (const one of tokens) await expectRevoked(client, one);
    expect([await isAccepted(others.access), (await other.refresh(others.refresh)).status]).toEqual([true, 200]);
    const fresh = await pair(client);
    expect([await isAccepted(fresh.access), (await client.refresh(fresh.refresh)).status]).toEqual([true, 200]);
  });

  test('also revokes the tokens of a request that was authenticated before and is answered after', async () => {
    const client = await usher.client();
    const authenticated = await usher.clients.get(client.id);
    const { refresh } = await pair(client);
    await usher.clients.revokeTokens(client.id);
    const service = usher.running.app.get(TokenService, { strict: false });
    const issued = await service.token(authenticated, { grant_type: 'client_credentials' });
    const refreshed = await service.refresh(authenticated, { grant_type: 'refresh_token', refresh_token: refresh });
    await expectRevoked(client, { access: issued.access_token, refresh: issued.refresh_token });
    await expectRevoked(client, { access: refreshed.access_token, refresh: refreshed.refresh_token });
  });

  test('names an unknown client', async () => {
    const { code, stdout, stderr } = await run(usher.settings, ['client', 'revoke-tokens', 'nobody']);
    expect([code, stdout, stderr]).toEqual([1, '', expect.stringContaining('there is no client nobody')]);
  });
});

describe('client rotate-secret --revoke-tokens', () => {
  const rotate = (client: TestClient, ...more: string[]): Promise<{ client_secret: string }> =>
    usherJson(usher.settings, ['client', 'rotate-secret', client.id, '--revoke-tokens', ...more]);

  test('ends the old secret at once, with every token', async () => {
    const client = await usher.client();
    const tokens = await pair(client);
    const { client_secret: secret } = await rotate(client);
    expect((await client.token()).status).toBe(401);
    await expectRevoked(new TestClient(usher, client.id, secret), tokens);
  });

  test('keeps the old secret for an overlap that is given', async () => {
    const client = await usher.client();
    const tokens = await pair(client);
    await rotate(client, '--overlap', '1h');
    await expectRevoked(client, tokens);
    expect((await client.token()).status).toBe(200);
  });

  test('without the option, tokens stay valid', async () => {
    const client = await usher.client();
    const { access } = await pair(client);
    await usherJson(usher.settings, ['client', 'rotate-secret', client.id, '--overlap', '0s']);
    expect(await isAccepted(access)).toBe(true);
  });
});

test('enabling a disabled client does not make its tokens valid again', async () => {
  const client = await usher.client();
  const tokens = await pair(client);
  expect(await isAccepted(tokens.access)).toBe(true);
  await usher.clients.setDisabled(client.id, true);
  await eventually('the access token is rejected', async () => !(await isAccepted(tokens.access)));
  await usher.clients.setDisabled(client.id, false);
  await expectRevoked(client, tokens);
  expect(await isAccepted((await pair(client)).access)).toBe(true);
});

test('the tables of tokens are not read to revoke them, however many there are', async () => {
  const client = await usher.client();
  const statements: string[] = [];
  const ignore = (): undefined => undefined;
  const logger = usher.dataSource.logger;
  usher.dataSource.logger = {
    logQuery: (sql: string) => void statements.push(sql),
    logQueryError: ignore,
    logQuerySlow: ignore,
    logSchemaBuild: ignore,
    logMigration: ignore,
    log: ignore,
  };
  await usher.clients.revokeTokens(client.id);
  usher.dataSource.logger = logger;
  expect(statements.filter((sql) => /usher_client\b/.test(sql))).not.toEqual([]);
  expect(statements.filter((sql) => /usher_(grant|access_token)/.test(sql))).toEqual([]);
});
