import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { NEW_ORDER, type TestClient, type TestUsher } from '../../support/usher.js';
import {
  application,
  authorizePath,
  exchange,
  member,
  ownerToken,
  REDIRECT_URI,
  signedIn,
  startWithIssuer,
  TestBrowser,
} from './support.js';

let usher: TestUsher;
let client: TestClient;

beforeAll(async () => {
  usher = await startWithIssuer();
  client = await application(usher);
});
afterAll(() => usher.stop());

describe('the authorisation-code grant', () => {
  test('leads from the request over sign-in and consent to the tokens of specification 2.1', async () => {
    const owner = await member(usher);
    const browser = new TestBrowser(usher.running.url);
    const asked = await browser.get(authorizePath(client));
    expect(asked.status).toBe(303);
    expect(new URL(asked.location).pathname).toBe('/auth/sign-in');
    const signed = await browser.signIn(owner.name, asked.location);
    expect(signed.status).toBe(303);
    const answered = await browser.decide(signed.location);
    expect(answered.href).toMatch(`${REDIRECT_URI}&code=usher_sandbox_code_`);
    expect(answered.searchParams.get('state')).toBe('state-1');
    expect(answered.searchParams.get('iss')).toBe(usher.running.url);
    const { status, body } = await exchange(client, answered.searchParams.get('code')!, { redirect_uri: REDIRECT_URI });
    expect(status).toBe(200);
    expect(Object.keys(body)).toEqual([
      'access_token',
      'expires_in',
      'refresh_token',
      'refresh_token_expires_in',
      'token_type',
    ]);
  });

  test('gives tokens that belong to the owner, and stay theirs when they are refreshed', async () => {
    const { browser, owner } = await signedIn(usher);
    const { tokens } = await ownerToken(client, browser);
    const refreshed = await client.refresh(tokens.refresh_token);
    for (const token of [tokens.access_token, tokens.refresh_token, refreshed.body.access_token]) {
      const { body } = await usher.request('POST', '/auth/introspect', { authorization: client.basic }, { token });
      expect(body).toMatchObject({ active: true, client_id: client.id, sub: `owner:${owner.id}` });
    }
    const own = (await client.token()).body.access_token;
    const { body } = await usher.request('POST', '/auth/introspect', { authorization: client.basic }, { token: own });
    expect(body).not.toHaveProperty('sub');
  });

  test('keeps the orders of two owners of one client apart; the client itself sees both', async () => {
    const [one, other] = await Promise.all([1, 2].map(async () => ownerToken(client, (await signedIn(usher)).browser)));
    const { status, body } = await one!.call('POST', '/movie-orders', NEW_ORDER);
    expect(status).toBe(201);
    const path = `/movie-orders/${String(body.key)}`;
    expect((await one!.call('GET', path)).status).toBe(200);
    expect((await other!.call('GET', path)).status).toBe(404);
    expect((await client.call('GET', path)).status).toBe(200);
  });
});
