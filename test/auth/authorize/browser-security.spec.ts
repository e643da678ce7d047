import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { MemberSession } from '../../../src/members/member.entity.js';
import { MembersService } from '../../../src/members/members.service.js';
import { NEW_ORDER, type TestClient, type TestUsher } from '../../support/usher.js';
import {
  application,
  authorizePath,
  exchange,
  fieldsOf,
  member,
  ownerToken,
  PASSWORD,
  signedIn,
  startWithIssuer,
  TestBrowser,
} from './support.js';

let usher: TestUsher;
let client: TestClient;

beforeAll(async () => {
  usher = await startWithIssuer({ AUTH_FAILURE_LIMIT: '5/m' });
  client = await application(usher);
});
afterAll(() => usher.stop());

const consentForm = async (browser: TestBrowser): Promise<string> =>
  fieldsOf((await browser.get(authorizePath(client))).text).form!;

const allow = (browser: TestBrowser, form: string, headers: Record<string, string> = {}) =>
  browser.post('/auth/consent', { form, decision: 'allow' }, headers);

describe('the consent page', () => {
  test('says which application asks, for whose account and where the browser goes, and declining works', async () => {
    const { browser, owner } = await signedIn(usher);
    const { status, text } = await browser.get(authorizePath(client));
    expect(status).toBe(200);
    for (const shown of ['A test client', owner.name, 'partner.example']) expect(text).toContain(shown);
    const { searchParams } = await browser.decide(authorizePath(client), 'decline');
    expect([searchParams.get('error'), searchParams.get('state'), searchParams.get('iss')]).toEqual([
      'access_denied',
      'state-1',
      usher.running.url,
    ]);
  });

  test('refuses a forged form token, one of another browser, and one that was sent before', async () => {
    const { browser } = await signedIn(usher);
    const { browser: stranger } = await signedIn(usher);
    const form = await consentForm(browser);
    for (const forged of ['', 'x'.repeat(43), await consentForm(stranger)])
      expect((await allow(browser, forged)).status).toBe(403);
    expect((await allow(stranger, form)).status).toBe(403);
    expect((await allow(browser, form)).status).toBe(303);
    expect((await allow(browser, form)).status).toBe(403);
  });

  test('refuses a form from a page of another site, and one without the form cookie', async () => {
    const { browser } = await signedIn(usher);
    const form = await consentForm(browser);
    expect((await allow(browser, form, { origin: 'https://evil.example' })).status).toBe(403);
    // The second one is a page of another host of the same domain.
    for (const site of ['cross-site', 'same-site'])
      expect((await allow(browser, form, { 'sec-fetch-site': site })).status).toBe(403);
    const cookie = browser.cookies.get('usher-form')!;
    browser.cookies.delete('usher-form');
    expect((await allow(browser, form)).status).toBe(403);
    browser.cookies.set('usher-form', cookie);
    expect((await allow(browser, form)).status).toBe(303);
  });

  test('cannot be framed, and does not limit where the redirect URI leads on; other pages keep their forms here', async () => {
    const { browser } = await signedIn(usher);
    const { headers, text } = await browser.get(authorizePath(client));
    const policy = headers.get('content-security-policy')!;
    for (const part of ["default-src 'none'", "frame-ancestors 'none'"]) expect(policy).toContain(part);
    expect(policy).not.toContain('form-action');
    const connections = await browser.get('/auth/connections');
    expect(connections.headers.get('content-security-policy')).toContain("form-action 'self'");
    expect(headers.get('x-frame-options')).toBe('DENY');
    expect(headers.get('cache-control')).toBe('no-store');
    expect(text).not.toMatch(/<script|src=|style="/);
  });
});

test('the page of connected applications refuses a client_id that no client can have', async () => {
  const { browser } = await signedIn(usher);
  await browser.decide(authorizePath(client));
  const withdraw = async (client_id: string) => {
    const { form } = fieldsOf((await browser.get('/auth/connections')).text);
    return (await browser.post('/auth/connections', { form: form!, client_id })).status;
  };
  expect([await withdraw('a\0b'), await withdraw(client.id)]).toEqual([403, 303]);
});

describe('a link of this server', () => {
  test('leads to no other site before the owner has signed in, also with a faulty request', async () => {
    const faults: Record<string, string | null>[] = [
      { scope: 'x' },
      { code_challenge: null },
      { response_type: 'token' },
    ];
    for (const fault of faults) {
      const answer = await new TestBrowser(usher.running.url).get(authorizePath(client, fault));
      expect([answer.status, new URL(answer.location).origin]).toEqual([303, usher.running.url]);
    }
  });

  test('to the sign-in page leads back only to pages of this server', async () => {
    for (const to of [
      'https://evil.example/',
      '//evil.example',
      '/auth/../x',
      '/auth/authorize',
      '/auth/connections?x',
    ]) {
      const browser = new TestBrowser(usher.running.url);
      const { name } = await member(usher);
      const { location } = await browser.signIn(name, `/auth/sign-in?${new URLSearchParams({ return_to: to })}`);
      expect(location).toBe(`${usher.running.url}/auth/connections`);
    }
  });

  test('with prompt=login asks for the password again', async () => {
    const { browser, owner } = await signedIn(usher);
    const { location } = await browser.get(authorizePath(client, { prompt: 'login' }));
    expect(new URL(location).pathname).toBe('/auth/sign-in');
    const { location: back } = await browser.signIn(owner.name, location);
    expect((await browser.get(back)).text).toContain('A test client');
  });

  test('answers a browser with a page, never with a challenge for Basic', async () => {
    for (const path of ['/auth/authorize', '/auth/sign-in?x=%ZZ', '/auth/nothing', '/auth/consent', '/auth']) {
      const { status, headers } = await new TestBrowser(usher.running.url).get(path);
      expect([path, status === 200 || status >= 400, headers.get('www-authenticate')]).toEqual([path, true, null]);
      expect([path, headers.get('content-type')]).toEqual([path, 'text/html; charset=utf-8']);
    }
  });
});

describe('signing in', () => {
  test('begins a session with a new token, and does not take one that was set before', async () => {
    const { name } = await member(usher);
    const browser = new TestBrowser(usher.running.url);
    const planted = 'A'.repeat(43);
    browser.cookies.set('usher-session', planted);
    await browser.get('/auth/sign-in');
    const before = browser.cookies.get('usher-form');
    await browser.signIn(name);
    const first = browser.cookies.get('usher-session');
    expect([first === planted, browser.cookies.get('usher-form') === before]).toEqual([false, false]);
    await browser.signIn(name);
    expect(browser.cookies.get('usher-session')).not.toBe(first);
    browser.cookies.set('usher-session', first!);
    expect((await browser.get('/auth/connections')).status).toBe(303);
  });

  test('takes a name with spaces around it, which keyboards of phones add', async () => {
    const { name } = await member(usher);
    expect((await new TestBrowser(usher.running.url).signIn(` ${name} `)).status).toBe(303);
  });

  test('needs the form of this browser (login CSRF)', async () => {
    const { name } = await member(usher);
    const attacker = new TestBrowser(usher.running.url);
    const { form } = fieldsOf((await attacker.get('/auth/sign-in')).text);
    const victim = new TestBrowser(usher.running.url);
    await victim.get('/auth/sign-in');
    const fields = { form: form!, return_to: '', name, password: PASSWORD };
    expect((await victim.post('/auth/sign-in', fields)).status).toBe(403);
    expect(victim.cookies.has('usher-session')).toBe(false);
    expect((await attacker.post('/auth/sign-in', fields)).status).toBe(303);
  });

  test('fails alike for a wrong password, an unknown name and a disabled member, and is limited', async () => {
    const { name } = await member(usher);
    const disabled = await member(usher);
    await usher.running.app.get(MembersService, { strict: false }).setDisabled(disabled.name, true);
    const texts = [];
    for (const [given, password] of [
      [name, 'wrong password'],
      ['nobody@cinema.example', PASSWORD],
      [disabled.name, PASSWORD],
    ] as const) {
      const answer = await new TestBrowser(usher.running.url).signIn(given, '/auth/sign-in', password);
      expect(answer.status).toBe(403);
      texts.push(answer.text.replaceAll(given, 'NAME').replace(/name="form" value="[^"]*"/g, ''));
    }
    expect(new Set(texts).size).toBe(1);
    const statuses = [];
    for (let tries = 0; tries < 6; tries += 1) {
      const browser = new TestBrowser(usher.running.url);
      statuses.push((await browser.signIn('nobody@cinema.example', '/auth/sign-in', 'wrong')).status);
    }
    expect(statuses).toEqual([403, 403, 403, 403, 429, 429]);
  });
});

describe('a session', () => {
  test('is stored as a digest, and ends by sign-out, by idleness, and with the account', async () => {
    const { browser, owner } = await signedIn(usher);
    const { manager } = usher.dataSource;
    const [session] = await manager.findBy(MemberSession, { memberId: owner.id });
    expect(session!.digest).not.toBe(browser.cookies.get('usher-session'));
    await manager.update(MemberSession, { memberId: owner.id }, { expiresAt: 1 });
    expect((await browser.get('/auth/connections')).status).toBe(303);
    await browser.signIn(owner.name);
    const { form } = fieldsOf((await browser.get('/auth/sign-out')).text);
    expect((await browser.post('/auth/sign-out', { form: form! })).status).toBe(303);
    expect((await browser.get('/auth/connections')).status).toBe(303);
  });

  test('a new password or disabling ends it, and all that applications got', async () => {
    const members = usher.running.app.get(MembersService, { strict: false });
    for (const end of [
      (name: string) => members.setPassword(name, 'another password'),
      (name: string) => members.setDisabled(name, true),
    ]) {
      const { browser, owner } = await signedIn(usher);
      const { call, tokens } = await ownerToken(client, browser);
      expect((await call('POST', '/movie-orders', NEW_ORDER)).status).toBe(201);
      await end(owner.name);
      expect((await browser.get('/auth/connections')).status).toBe(303);
      expect((await client.refresh(tokens.refresh_token)).body.error).toBe('invalid_grant');
      expect((await call('GET', '/webhooks')).status).toBe(401);
    }
  });
});

test('a trusted application gets its code without a consent page, and can be withdrawn', async () => {
  const trusted = await application(usher, { isTrusted: true });
  const { browser } = await signedIn(usher);
  const { status, location } = await browser.get(authorizePath(trusted));
  expect(status).toBe(303);
  const { body } = await exchange(trusted, new URL(location).searchParams.get('code')!);
  const page = await browser.get('/auth/connections');
  const { form } = fieldsOf(page.text);
  expect((await browser.post('/auth/connections', { form: 'x', client_id: trusted.id })).status).toBe(403);
  expect((await browser.post('/auth/connections', { form: form!, client_id: trusted.id })).status).toBe(303);
  expect((await trusted.refresh(body.refresh_token)).body.error).toBe('invalid_grant');
});
