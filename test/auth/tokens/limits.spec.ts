import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type Running, serve } from '../../../src/server/serve.js';
import { loadConfig } from '../../../src/server/settings/settings.js';
import { BACKEND, type Backend, createBackend } from '../../support/backend.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { type Answer, basic, type TestClient, TestUsher } from '../../support/usher.js';
import { encoded, expectOAuthError, post, ROUTES } from './support.js';

const LIMIT = 5;
/** Ten times the limit, see failure-limit.ts. */
const WIDER = 50;

let usher: TestUsher;

beforeAll(async () => {
  usher = await TestUsher.start({
    AUTH_FAILURE_LIMIT: `${LIMIT}/h`,
    TOKEN_RATE_LIMIT: `${LIMIT}/h`,
    TRUST_PROXY: '1',
  });
});
afterAll(() => usher.stop());

const RIGHT = encoded('json', { grant_type: 'client_credentials' });
const from = (address: string) => ({ 'x-forwarded-for': `203.0.113.99, ${address}` });
const guess = (client: TestClient, address: string, path = '/auth/token'): Promise<Answer> =>
  post(client, path, RIGHT, basic(client.id, 'a guess'), from(address));
const enter = (client: TestClient, address: string): Promise<Answer> =>
  post(client, '/auth/introspect', encoded('json', { token: 'x' }), client.basic, from(address));

async function lockOut(client: TestClient, address: string): Promise<void> {
  for (let n = 0; n < LIMIT; n += 1) expectOAuthError(await guess(client, address), 401, 'invalid_client');
}

function expectSlowDown(answer: Answer): void {
  expectOAuthError(answer, 429, 'slow_down');
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
  expect(Number(answer.headers.get('retry-after'))).toBeLessThanOrEqual(3_600);
}

describe('who guesses the secret of a client', () => {
  test('is shut out, on every route, even with the right secret', async () => {
    const client = await usher.client();
    await lockOut(client, '192.0.2.1');
    for (const path of ROUTES) expectSlowDown(await guess(client, '192.0.2.1', path));
    expectSlowDown(await enter(client, '192.0.2.1'));
  });

  test('shuts out neither the client at other addresses nor other clients at the same', async () => {
    const [client, other] = [await usher.client(), await usher.client()];
    await lockOut(client, '192.0.2.2');
    expect((await enter(client, '192.0.2.3')).status).toBe(200);
    expect((await enter(other, '192.0.2.2')).status).toBe(200);
  });

  test('gains nothing by guessing many at once', async () => {
    const client = await usher.client();
    const answers = await Promise.all(Array.from({ length: 30 }, () => guess(client, '192.0.2.4')));
    expect(answers.filter(({ status }) => status === 401)).toHaveLength(LIMIT);
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(30 - LIMIT);
  });

  test('gains nothing by spelling the id in other ways', async () => {
    const client = await usher.client();
    const spellings = [...client.id].slice(0, LIMIT).map((letter) => {
      const odd = client.id.replace(letter, `%${letter.charCodeAt(0).toString(16)}`);
      return post(client, '/auth/token', RIGHT, basic(odd, 'a guess'), from('192.0.2.5'));
    });
    await Promise.all(spellings);
    expectSlowDown(await enter(client, '192.0.2.5'));
  });

  test('is one and the same in a /64, and another in the next', async () => {
    const client = await usher.client();
    for (let n = 1; n <= LIMIT; n += 1) await guess(client, `2001:db8:1:2:${n}::${n}`);
    expectSlowDown(await enter(client, '2001:db8:1:2::ffff'));
    expect((await enter(client, '2001:db8:1:3::1')).status).toBe(200);
  });

  test('is shut out of all ids after ten times as many failures', async () => {
    const client = await usher.client();
    const tries = Array.from({ length: WIDER }, (_, n) =>
      post(client, '/auth/token', RIGHT, basic(`made-up-${n}`, 'x'), from('192.0.2.6')),
    );
    await Promise.all(tries);
    expectSlowDown(await enter(client, '192.0.2.6'));
    expect((await enter(client, '192.0.2.7')).status).toBe(200);
  });

  test('cannot choose an address: only what the trusted proxy says counts', async () => {
    const client = await usher.client();
    for (let n = 0; n < LIMIT; n += 1) {
      const headers = { 'x-forwarded-for': `198.51.100.${n}, 192.0.2.8` };
      await post(client, '/auth/token', RIGHT, basic(client.id, 'x'), headers);
    }
    expectSlowDown(await enter(client, '192.0.2.8'));
  });
});

test('requests that claim to be nobody are not counted', async () => {
  const client = await usher.client();
  for (let n = 0; n < WIDER + 1; n += 1) await post(client, '/auth/token', RIGHT, 'Basic !', from('192.0.2.9'));
  expect((await enter(client, '192.0.2.9')).status).toBe(200);
});

test('a client gets so many tokens, issued and refreshed together, and another client its own share', async () => {
  const [client, other] = [await usher.client(), await usher.client()];
  const { body } = await client.token();
  for (let n = 1; n < LIMIT; n += 1) expect((await client.refresh(body.refresh_token)).status).toBe(200);
  expectSlowDown(await client.refresh(body.refresh_token));
  expectSlowDown(await client.token());
  expect((await other.token()).status).toBe(200);
});

describe('without TRUST_PROXY', () => {
  test('X-Forwarded-For counts for nothing', async () => {
    const direct = await TestUsher.start({ AUTH_FAILURE_LIMIT: `${LIMIT}/h` });
    const client = await direct.client();
    for (let n = 0; n < LIMIT; n += 1) await guess(client, `192.0.2.${n}`);
    expectSlowDown(await enter(client, '192.0.2.200'));
    await direct.stop();
  });
});

/** What an embedded database does without: other processes, and a server to share counts through. */
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

    test('count together', async () => {
      const statuses: number[] = [];
      for (let n = 0; n < LIMIT + 1; n += 1) {
        const url = `${running[n % 2]?.url}/auth/token`;
        statuses.push((await fetch(url, { method: 'POST', headers: { authorization: basic('x', 'y') } })).status);
      }
      expect(statuses).toEqual([...Array.from({ length: LIMIT }, () => 401), 429]);
    });
  });

if (BACKEND !== 'embedded')
  describe('without the server that shares the counts', () => {
    test('tokens are issued all the same, and who guesses is shut out by each process for itself', async () => {
      const backend = await createBackend();
      const { QUEUE_URL = backend.settings.DATABASE_URL ?? '' } = backend.settings;
      const proxy = await TcpProxy.to(QUEUE_URL);
      const cut = await TestUsher.start({
        ...backend.settings,
        QUEUE_URL: proxy.through(QUEUE_URL),
        AUTH_FAILURE_LIMIT: `${LIMIT}/h`,
        USHER_ROLE: 'api',
      });
      const [client, other] = [await cut.client(), await cut.client()];
      proxy.cut();
      expect((await client.token()).status).toBe(200);
      await lockOut(client, '192.0.2.1');
      expectSlowDown(await client.token());
      expectOAuthError(await guess(other, '192.0.2.1'), 401, 'invalid_client');
      await cut.stop();
      proxy.close();
      await backend.drop();
    });
  });
