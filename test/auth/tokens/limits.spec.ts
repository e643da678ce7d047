import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { ClientsService } from '../../../src/clients/clients.service.js';
import { type Running, serve } from '../../../src/server/serve.js';
import { loadConfig } from '../../../src/server/settings/settings.js';
import { BACKEND, type Backend, createBackend } from '../../support/backend.js';
import { eventually } from '../../support/eventually.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { type Answer, basic, type TestClient, TestUsher } from '../../support/usher.js';
import { encoded, expectOAuthError, post, ROUTES } from './support.js';

const LIMIT = 5;
/** The limit of one address: ten times LIMIT, see failure-limit.ts. */
const ADDRESS_LIMIT = 50;

let usher: TestUsher;

beforeAll(async () => {
  usher = await TestUsher.start({
    AUTH_FAILURE_LIMIT: `${LIMIT}/h`,
    TOKEN_RATE_LIMIT: `${LIMIT}/h`,
    TRUST_PROXY: '1',
  });
});
afterAll(() => usher.stop());

/** It has the form of a refresh token. */
const UNKNOWN = `usher_sandbox_refresh_${'A'.repeat(43)}`;
const VALID_REQUEST = encoded('json', { grant_type: 'client_credentials' });
const from = (address: string) => ({ 'x-forwarded-for': `203.0.113.99, ${address}` });
const sendWrongSecret = (client: TestClient, address: string, path = '/auth/token'): Promise<Answer> =>
  post(client, path, VALID_REQUEST, basic(client.id, 'wrong'), from(address));
const authenticate = (client: TestClient, address: string): Promise<Answer> =>
  post(client, '/auth/introspect', encoded('json', { token: 'x' }), client.basic, from(address));

async function reachLimit(client: TestClient, address: string): Promise<void> {
  for (let n = 0; n < LIMIT; n += 1) expectOAuthError(await sendWrongSecret(client, address), 401, 'invalid_client');
}

function expectSlowDown(answer: Answer): void {
  expectOAuthError(answer, 429, 'slow_down');
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
  expect(Number(answer.headers.get('retry-after'))).toBeLessThanOrEqual(3_600);
}

describe('a caller that guesses a client secret', () => {
  test('is blocked on every route, even with the correct secret', async () => {
    const client = await usher.client();
    await reachLimit(client, '192.0.2.1');
    for (const path of ROUTES) expectSlowDown(await sendWrongSecret(client, '192.0.2.1', path));
    expectSlowDown(await authenticate(client, '192.0.2.1'));
  });

  test('does not block the client at other addresses, or other clients at the same address', async () => {
    const [client, other] = [await usher.client(), await usher.client()];
    await reachLimit(client, '192.0.2.2');
    expect((await authenticate(client, '192.0.2.3')).status).toBe(200);
    expect((await authenticate(other, '192.0.2.2')).status).toBe(200);
  });

  test('cannot exceed the limit with concurrent requests', async () => {
    const client = await usher.client();
    const answers = await Promise.all(Array.from({ length: 30 }, () => sendWrongSecret(client, '192.0.2.4')));
    expect(answers.filter(({ status }) => status === 401)).toHaveLength(LIMIT);
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(30 - LIMIT);
  });

  test('cannot exceed the limit by encoding the id differently', async () => {
    const client = await usher.client();
    const spellings = [...client.id].slice(0, LIMIT).map((letter) => {
      const encodedId = client.id.replace(letter, `%${letter.charCodeAt(0).toString(16)}`);
      return post(client, '/auth/token', VALID_REQUEST, basic(encodedId, 'wrong'), from('192.0.2.5'));
    });
    await Promise.all(spellings);
    expectSlowDown(await authenticate(client, '192.0.2.5'));
  });

  test('is counted per /64 network', async () => {
    const client = await usher.client();
    for (let n = 1; n <= LIMIT; n += 1) await sendWrongSecret(client, `2001:db8:1:2:${n}::${n}`);
    expectSlowDown(await authenticate(client, '2001:db8:1:2::ffff'));
    expect((await authenticate(client, '2001:db8:1:3::1')).status).toBe(200);
  });

  test('with invented ids is answered 429 after ten times as many failures, but locks out no client of its address', async () => {
    const client = await usher.client();
    const guess = (id: string): Promise<Answer> =>
      post(client, '/auth/token', VALID_REQUEST, basic(id, 'x'), from('192.0.2.6'));
    const answers = await Promise.all(Array.from({ length: 2 * ADDRESS_LIMIT }, (_, n) => guess(`invented-${n}`)));
    expect(answers.filter(({ status }) => status === 401)).toHaveLength(ADDRESS_LIMIT);
    expect((await authenticate(client, '192.0.2.6')).status).toBe(200);
    expect((await guess('invented')).status).toBe(429);
    // The same as for an invented id, so that the answer does not tell which ids exist.
    expectSlowDown(await sendWrongSecret(client, '192.0.2.6'));
    expect((await authenticate(client, '192.0.2.6')).status).toBe(200);
  });

  test('cannot forge its address: only the address from the trusted proxy counts', async () => {
    const client = await usher.client();
    for (let n = 0; n < LIMIT; n += 1) {
      const headers = { 'x-forwarded-for': `198.51.100.${n}, 192.0.2.8` };
      await post(client, '/auth/token', VALID_REQUEST, basic(client.id, 'x'), headers);
    }
    expectSlowDown(await authenticate(client, '192.0.2.8'));
  });
});

test.each([
  ['/auth/token', '192.0.2.9', 'x'],
  ['/auth/token', '192.0.2.10', 'Basic bm9wZQ=='],
  ['/client', '192.0.2.11', 'Bearer x'],
])(
  'at %s an address with unreadable credentials is answered 429 after as many, and locks out no client',
  async (...at) => {
    const [path, address, authorization] = at;
    const client = await usher.client();
    const send = (headers: Record<string, string>): Promise<Answer> =>
      usher.request(path === '/client' ? 'GET' : 'POST', path, { ...headers, ...from(address) });
    const statuses = async (headers: Record<string, string>): Promise<number[]> =>
      (await Promise.all(Array.from({ length: ADDRESS_LIMIT }, () => send(headers)))).map(({ status }) => status);
    expect(new Set(await statuses({}))).toEqual(new Set([401]));
    expect(new Set(await statuses({ authorization }))).toEqual(new Set([401]));
    const refused = await send({ authorization });
    expect([refused.status, Number(refused.headers.get('retry-after')) > 0]).toEqual([429, true]);
    expect((await authenticate(client, address)).status).toBe(200);
    expect((await send({})).status).toBe(401);
  },
);

test('issued and refreshed tokens share one limit, and each client has its own', async () => {
  const [client, other] = [await usher.client(), await usher.client()];
  const { body } = await client.token();
  for (let n = 1; n < LIMIT; n += 1) expect((await client.refresh(body.refresh_token)).status).toBe(200);
  expectSlowDown(await client.refresh(body.refresh_token));
  expectSlowDown(await client.token());
  expect((await other.token()).status).toBe(200);
});

test('a request with an unknown refresh token counts once', async () => {
  const client = await usher.client();
  for (let n = 0; n < LIMIT; n += 1) expectOAuthError(await client.refresh(UNKNOWN), 400, 'invalid_grant');
  expectSlowDown(await client.refresh(UNKNOWN));
});

describe('without TRUST_PROXY', () => {
  test('X-Forwarded-For is ignored', async () => {
    const direct = await TestUsher.start({ AUTH_FAILURE_LIMIT: `${LIMIT}/h` });
    const client = await direct.client();
    for (let n = 0; n < LIMIT; n += 1) await sendWrongSecret(client, `192.0.2.${n}`);
    expectSlowDown(await authenticate(client, '192.0.2.200'));
    await direct.stop();
  });
});

/** An embedded database has only one process and no shared store. */
if (BACKEND !== 'embedded')
  describe('two processes', () => {
    let backend: Backend;
    const running: Running[] = [];

    beforeAll(async () => {
      backend = await createBackend();
      const settings = { PORT: '0', LOG_LEVEL: 'silent', AUTH_FAILURE_LIMIT: `${LIMIT}/h`, ...backend.settings };
      for (let n = 0; n < 2; n += 1) running.push(await serve(loadConfig(settings)));
    });
    afterAll(async () => {
      for (const { app } of running) await app.close();
      await backend.drop();
    });

    const tokenAt = async (at: number, authorization: string): Promise<number> => {
      const headers = { authorization, 'content-type': 'application/json' };
      const body = '{"grant_type":"client_credentials"}';
      return (await fetch(`${running[at]?.url}/auth/token`, { method: 'POST', headers, body })).status;
    };

    test('share their counts within a second', async () => {
      const clients = running[0]!.app.get(ClientsService, { strict: false });
      const { client, secret } = await clients.create('A client', null);
      for (let n = 0; n < LIMIT; n += 1) expect(await tokenAt(0, basic(client.id, 'wrong'))).toBe(401);
      await eventually('the other process refuses even the right secret', async () => {
        const status = await tokenAt(1, basic(client.id, secret));
        return status === 429;
      });
    });
  });

if (BACKEND !== 'embedded')
  describe('without the shared store', () => {
    test('tokens are still issued, and each process blocks guessing on its own', async () => {
      const backend = await createBackend();
      const { QUEUE_URL = backend.settings.DATABASE_URL ?? '' } = backend.settings;
      const proxy = await TcpProxy.to(QUEUE_URL);
      const disconnected = await TestUsher.start({
        ...backend.settings,
        QUEUE_URL: proxy.through(QUEUE_URL),
        AUTH_FAILURE_LIMIT: `${LIMIT}/h`,
        USHER_ROLE: 'api',
      });
      const [client, other] = [await disconnected.client(), await disconnected.client()];
      proxy.cut();
      expect((await client.token()).status).toBe(200);
      await reachLimit(client, '192.0.2.1');
      expectSlowDown(await client.token());
      expectOAuthError(await sendWrongSecret(other, '192.0.2.1'), 401, 'invalid_client');
      await disconnected.stop();
      proxy.close();
      await backend.drop();
    });
  });
