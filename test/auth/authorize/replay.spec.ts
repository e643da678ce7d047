import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Pool } from 'undici';
import { AuditLog } from '../../../src/audit/audit.module.js';
import { Authorization } from '../../../src/clients/authorization.entity.js';
import { SecretRotation } from '../../../src/clients/secrets/secret-rotation.js';
import { AccessToken, Grant } from '../../../src/auth/tokens/grant.entity.js';
import { digestToken } from '../../../src/auth/tokens/token.js';
import { NEW_ORDER, TestClient, type TestUsher } from '../../support/usher.js';
import {
  application,
  authorizePath,
  exchange,
  ownerToken,
  signedIn,
  startWithIssuer,
  type TestBrowser,
} from './support.js';

const CONCURRENT = process.env.TEST_FULL === '1' ? 1_000 : 200;

let usher: TestUsher;
let client: TestClient;
let browser: TestBrowser;
let ownerId: string;

beforeAll(async () => {
  usher = await startWithIssuer({ TOKEN_RATE_LIMIT: 'off' });
  client = await application(usher);
  const signed = await signedIn(usher);
  browser = signed.browser;
  ownerId = signed.owner.id;
});
afterAll(() => usher.stop());

const newCode = async (): Promise<string> =>
  (await browser.decide(authorizePath(client))).searchParams.get('code') ?? '';

/** As many connections as a server takes at once: a system refuses more than its backlog of them. */
const CONNECTIONS = 250;

async function exchangeAtOnce(code: string) {
  const pool = new Pool(usher.running.url, { connections: CONNECTIONS });
  const body = JSON.stringify({ grant_type: 'authorization_code', code, code_verifier: 'v'.repeat(43) });
  const headers = { authorization: client.basic, 'content-type': 'application/json' };
  const exchangeOnce = async () => {
    const answer = await pool.request({ method: 'POST', path: '/auth/token', headers, body });
    return { status: answer.statusCode, body: (await answer.body.json()) as Record<string, unknown> };
  };
  const answers = await Promise.all(Array.from({ length: CONCURRENT }, exchangeOnce));
  await pool.close();
  return answers;
}

const grants = (): Promise<number> => usher.dataSource.manager.countBy(Grant, { ownerId });

describe('a code', () => {
  test(`of ${CONCURRENT} concurrent exchanges one is answered 200, and what it gave is revoked`, async () => {
    const code = await newCode();
    const answers = await exchangeAtOnce(code);
    const granted = answers.filter(({ status }) => status === 200);
    expect(granted).toHaveLength(1);
    // A busy database has no time for some of them (503).
    const refused = answers.filter(
      ({ status, body }) => status === 503 || (status === 400 && body.error === 'invalid_grant'),
    );
    expect(refused).toHaveLength(CONCURRENT - 1);
    const { access_token, refresh_token } = granted[0]!.body;
    expect((await client.refresh(refresh_token)).body.error).toBe('invalid_grant');
    const used = await usher.request('POST', '/movie-orders', { authorization: `Bearer ${access_token}` }, NEW_ORDER);
    expect(used.status).toBe(401);
    expect([await grants(), await usher.dataSource.manager.countBy(AccessToken, { ownerId })]).toEqual([0, 0]);
  });

  test('that is replayed ends a token that this process remembers from an earlier request', async () => {
    const { code, call } = await ownerToken(client, browser);
    expect((await call('GET', '/webhooks')).status).toBe(200);
    expect((await exchange(client, code)).status).toBe(400);
    expect((await call('GET', '/webhooks')).status).toBe(401);
  });

  test('that is replayed is recorded in the audit once', async () => {
    const { code } = await ownerToken(client, browser);
    for (let tries = 0; tries < 3; tries += 1) expect((await exchange(client, code)).status).toBe(400);
    const audit = usher.running.app.get(AuditLog, { strict: false });
    const [event, earlier] = await audit.list({ action: 'code.replayed' });
    expect(event).toMatchObject({
      actor: `client:${client.id}`,
      address: '127.0.0.1',
      subject: `client:${client.id}`,
      detail: { owner: ownerId },
    });
    expect(earlier?.detail.grant).not.toBe(event?.detail.grant);
  });

  test('that is replayed with a wrong verifier or by another client revokes nothing', async () => {
    const { code, call } = await ownerToken(client, browser);
    const other = await application(usher);
    expect((await exchange(client, code, { code_verifier: 'w'.repeat(43) })).status).toBe(400);
    expect((await exchange(other, code)).status).toBe(400);
    expect((await exchange(client, code, { redirect_uri: 'https://other.example/' })).status).toBe(400);
    expect((await call('GET', '/webhooks')).status).toBe(200);
  });

  test('is good for 60 s, and its replay after that revokes nothing new', async () => {
    const code = await newCode();
    const { manager } = usher.dataSource;
    const row = { codeDigest: digestToken(code) };
    const { expiresAt } = await manager.findOneByOrFail(Authorization, row);
    await manager.update(Authorization, row, { expiresAt: expiresAt - 60_000 });
    expect((await exchange(client, code)).body.error).toBe('invalid_grant');
    await manager.update(Authorization, row, { expiresAt });
    expect((await exchange(client, code)).status).toBe(200);
  });

  test('is refused with what is wrong with it, to its own client only', async () => {
    const code = await newCode();
    const wrong = { code_verifier: 'w'.repeat(43), redirect_uri: 'https://other.example/' };
    const refusal = async (by: TestClient, fields = {}) => (await exchange(by, code, fields)).body.error_description;
    expect(await refusal(client, wrong)).toMatch(/code_verifier/);
    expect(await refusal(client, { redirect_uri: wrong.redirect_uri })).toMatch(/redirect_uri/);
    const other = await application(usher);
    expect(await refusal(other, wrong)).toBe(await refusal(other));
    const { manager } = usher.dataSource;
    const row = { codeDigest: digestToken(code) };
    const { expiresAt } = await manager.findOneByOrFail(Authorization, row);
    await manager.update(Authorization, row, { expiresAt: 0 });
    expect(await refusal(client)).toMatch(/has expired/);
    await manager.update(Authorization, row, { expiresAt });
    expect((await exchange(client, code)).status).toBe(200);
    expect(await refusal(client)).toMatch(/used before/);
    expect(await refusal(client)).toMatch(/used before/);
    expect(await refusal(other)).toMatch(/unknown/);
  });

  test.each(['', null])('is exchanged with the redirect_uri %j, which counts as left out', async (redirect_uri) => {
    expect((await exchange(client, await newCode(), { redirect_uri })).status).toBe(200);
  });

  test('is not exchanged with a replaced secret that this process remembers, and stays usable with the new one', async () => {
    const replaced = await application(usher);
    const code = (await browser.decide(authorizePath(replaced))).searchParams.get('code')!;
    expect((await replaced.token()).status).toBe(200);
    const { secret } = await usher.running.app.get(SecretRotation, { strict: false }).rotate(replaced.id, 0);
    expect((await exchange(replaced, code)).body.error).toBe('invalid_client');
    expect((await exchange(new TestClient(usher, replaced.id, secret), code)).status).toBe(200);
  });

  test('of a client that may not use the grant is refused', async () => {
    const limited = await usher.client();
    const { status, body } = await exchange(limited, await newCode());
    expect({ status, error: body.error }).toEqual({ status: 400, error: 'unauthorized_client' });
  });

  test('is not usable once its client is disabled or the owner withdrew the consent', async () => {
    const code = await newCode();
    const page = await browser.get('/auth/connections');
    const [, form = ''] = /name="form" value="([^"]+)"/.exec(page.text) ?? [];
    expect((await browser.post('/auth/connections', { form, client_id: client.id })).status).toBe(303);
    expect((await exchange(client, code)).body.error).toBe('invalid_grant');
  });
});
