import { request as httpRequest } from 'node:http';
import { verifyNotification } from 'usher-receiver';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { TokenService } from '../../src/auth/tokens/token.service.js';
import { eventually } from '../support/eventually.js';
import { usher as run, usherJson } from '../support/process.js';
import { type Arrival, TestReceiver } from '../support/receiver.js';
import { statementsFromNowOn, statementsOf } from '../support/statements.js';
import { TestClient, TestUsher } from '../support/usher.js';

let usher: TestUsher;
let receiver: TestReceiver;
beforeAll(async () => {
  usher = await TestUsher.shared();
  receiver = await TestReceiver.start();
});
afterAll(() => void receiver.close());

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

/** The header that this secret has made; null if none. */
function madeBy(secret: string, { rawBody, headers }: Arrival): string | null {
  const made = ['x-signature', 'x-signature-next'].find((name) => {
    try {
      return verifyNotification({
        rawBody,
        headers: { ...headers, 'x-signature': headers[name], 'x-signature-next': undefined },
        secret,
      });
    } catch {
      return false;
    }
  });
  return made ?? null;
}

/** Each command runs in a process of its own, on the database of the server. */
describe('client rotate-secret --leaked', () => {
  const rotate = async (client: TestClient, ...options: string[]) => {
    const { client_secret: secret, old_secret_valid_until: until } = await usherJson<Record<string, string>>(
      usher.settings,
      ['client', 'rotate-secret', client.id, ...options],
    );
    return { renewed: new TestClient(usher, client.id, String(secret)), until: Date.parse(String(until)) };
  };
  const account = (client: TestClient) => usher.request('GET', '/client', { authorization: client.basic });

  test('a secret that this process remembers gets no token, no refresh and no account any more', async () => {
    const client = await usher.client();
    const tokens = await pair(client);
    const other = await usher.client();
    expect((await account(other)).status).toBe(200);
    await rotate(other, '--leaked');
    expect((await account(other)).status).toBe(401);
    const { renewed } = await rotate(client, '--leaked');
    const refused = [await client.token(), await client.refresh(tokens.refresh), await account(client)];
    expect(refused.map(({ status }) => status)).toEqual([401, 401, 401]);
    const introspection = { authorization: client.basic };
    await eventually('introspection is refused', async () => {
      const answer = await usher.request('POST', '/auth/introspect', introspection, { token: tokens.access });
      return answer.status === 401;
    });
    expect((await renewed.token()).status).toBe(200);
    expect([await isAccepted(tokens.access), (await renewed.refresh(tokens.refresh)).status]).toEqual([true, 200]);
  });

  test('a secret that leaks while the body of its request arrives gets no token', async () => {
    const client = await usher.client();
    const { logger } = usher.dataSource;
    const statements = statementsFromNowOn(usher.dataSource);
    const headers = { authorization: client.basic, 'content-type': 'application/json' };
    const request = httpRequest(`${usher.running.url}/auth/token`, { method: 'POST', headers });
    const answer = new Promise<number | undefined>((resolve) =>
      request.once('response', (response) => resolve(response.resume().statusCode)),
    );
    request.flushHeaders();
    await eventually('the client is authenticated', () =>
      statements.some((sql) => sql.includes('usher_client_secret')),
    );
    usher.dataSource.logger = logger;
    await rotate(client, '--leaked');
    request.end('{"grant_type":"client_credentials"}');
    expect(await answer).toBe(401);
  });

  test('it signs for an hour more, beside the new one, and the account says so', async () => {
    const client = await usher.client(receiver.url);
    const { renewed, until } = await rotate(client, '--leaked');
    const now = Date.now();
    expect([until > now + 3_500_000, until < now + 3_700_000]).toEqual([true, true]);
    const [arrival] = (await receiver.waitFor(await renewed.completedOrder())) as [Arrival];
    expect([madeBy(client.secret, arrival), madeBy(renewed.secret, arrival)]).toEqual([
      'x-signature',
      'x-signature-next',
    ]);
    expect((await account(renewed)).body.secrets).toMatchObject([
      { signs: 'X-Signature', hasLeaked: true, expiresAt: new Date(until).toISOString() },
      { signs: 'X-Signature-Next', hasLeaked: false, expiresAt: null },
    ]);
  });

  test('--revoke-tokens revokes the tokens too, and --overlap 0s ends the secret for signing too', async () => {
    const client = await usher.client(receiver.url);
    const tokens = await pair(client);
    const { renewed } = await rotate(client, '--leaked', '--revoke-tokens', '--overlap', '0s');
    await expectRevoked(renewed, tokens);
    const [arrival] = (await receiver.waitFor(await renewed.completedOrder())) as [Arrival];
    expect([madeBy(client.secret, arrival), madeBy(renewed.secret, arrival)]).toEqual([null, 'x-signature']);
  });

  test('--replace replaces the new secret that nobody received, and leaves the old one as it is', async () => {
    const client = await usher.client(receiver.url);
    const lost = (await rotate(client)).renewed;
    expect((await lost.token()).status).toBe(200);
    const { renewed } = await rotate(client, '--replace');
    const statuses = [await client.token(), await lost.token(), await renewed.token()].map(({ status }) => status);
    expect(statuses).toEqual([200, 401, 200]);
    const [arrival] = (await receiver.waitFor(await renewed.completedOrder())) as [Arrival];
    expect([client, lost, renewed].map(({ secret }) => madeBy(secret, arrival))).toEqual([
      'x-signature',
      null,
      'x-signature-next',
    ]);
  });

  test('--replace after a leak leaves the leaked secret refused, and its end as it is', async () => {
    const client = await usher.client();
    const { renewed: lost, until } = await rotate(client, '--leaked', '--overlap', '15m');
    const replaced = await rotate(client, '--replace');
    expect(replaced.until).toBe(until);
    const statuses = [await client.token(), await lost.token(), await replaced.renewed.token()].map(
      ({ status }) => status,
    );
    expect(statuses).toEqual([401, 401, 200]);
  });

  test('--replace needs a rotation, and stands alone', async () => {
    const client = await usher.client();
    const refused = await run(usher.settings, ['client', 'rotate-secret', client.id, '--replace']);
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('has no rotation in progress')]);
    const both = await run(usher.settings, ['client', 'rotate-secret', client.id, '--replace', '--leaked']);
    expect([both.code, both.stderr]).toEqual([1, expect.stringContaining('give --replace alone')]);
    expect((await client.token()).status).toBe(200);
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
  const statements = await statementsOf(usher.dataSource, () => usher.clients.revokeTokens(client.id));
  expect(statements.filter(({ sql }) => /usher_client\b/.test(sql))).not.toEqual([]);
  expect(statements.filter(({ sql }) => /usher_(grant|access_token)/.test(sql))).toEqual([]);
});
