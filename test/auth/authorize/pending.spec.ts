import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import { IsNull } from 'typeorm';
import { AuditLog } from '../../../src/audit/audit.module.js';
import { Authorization, Consent } from '../../../src/clients/authorization.entity.js';
import { ASK_LIMIT, Authorizations, MAX_OPEN } from '../../../src/auth/authorize/authorizations.js';
import { ClientApplications } from '../../../src/clients/client-applications.js';
import { Client, ClientApplication } from '../../../src/clients/client.entity.js';
import { SecretRotation } from '../../../src/clients/secrets/secret-rotation.js';
import { MembersService } from '../../../src/members/members.service.js';
import type { TestClient, TestUsher } from '../../support/usher.js';
import {
  application,
  authorizePath,
  exchange,
  fieldsOf,
  REDIRECT_URI,
  signedIn,
  startWithIssuer,
  type TestBrowser,
} from './support.js';

let usher: TestUsher;
let client: TestClient;
let trusted: TestClient;

beforeAll(async () => {
  usher = await startWithIssuer();
  client = await application(usher);
  trusted = await application(usher, { isTrusted: true });
});
afterAll(() => usher.stop());

const openOf = (ownerId: string) => usher.dataSource.manager.countBy(Authorization, { ownerId, usedAt: IsNull() });

test('a member has at most 20 requests that no application has used, and the newest are good', async () => {
  const { browser, owner } = await signedIn(usher);
  const first = fieldsOf((await browser.get(authorizePath(client))).text).form!;
  for (let n = 0; n < MAX_OPEN + 5; n += 1) await browser.get(authorizePath(n % 2 ? client : trusted));
  expect(await openOf(owner.id)).toBe(MAX_OPEN);
  expect((await browser.post('/auth/consent', { form: first, decision: 'allow' })).status).toBe(403);
  const code = (await browser.decide(authorizePath(client))).searchParams.get('code')!;
  expect((await exchange(client, code)).status).toBe(200);
});

test('a used code is never dropped for newer requests: its replay still revokes what it gave', async () => {
  const { browser } = await signedIn(usher);
  const code = (await browser.decide(authorizePath(client))).searchParams.get('code')!;
  const { body } = await exchange(client, code);
  for (let n = 0; n < MAX_OPEN + 1; n += 1) await browser.get(authorizePath(client));
  expect((await exchange(client, code)).status).toBe(400);
  expect((await client.refresh(body.refresh_token)).status).toBe(400);
});

test('a state of more than 2048 characters is refused, one of 2048 is stored and comes back', async () => {
  const { browser, owner } = await signedIn(usher);
  const refused = new URL((await browser.get(authorizePath(client, { state: 's'.repeat(2_049) }))).location);
  expect(refused.href).toMatch(REDIRECT_URI);
  expect(refused.searchParams.get('error')).toBe('invalid_request');
  expect(refused.searchParams.get('error_description')).toBe('state has more than 2048 characters; send a shorter one');
  expect(await openOf(owner.id)).toBe(0);
  const longest = 's'.repeat(2_048);
  expect((await browser.decide(authorizePath(client, { state: longest }))).searchParams.get('state')).toBe(longest);
});

test('the consent to a trusted application, which nobody is asked for, is in the audit once a day', async () => {
  const { browser, owner } = await signedIn(usher);
  const audit = usher.running.app.get(AuditLog, { strict: false });
  const consents = async () =>
    (await audit.list({ subject: `client:${trusted.id}`, action: 'consent.given' }))
      .map(({ detail }) => detail)
      .filter((detail) => detail.owner === owner.id);
  const code = async () => new URL((await browser.get(authorizePath(trusted))).location).searchParams.get('code')!;
  for (let n = 0; n < 5; n += 1) expect((await exchange(trusted, await code())).status).toBe(200);
  expect(await consents()).toEqual([{ owner: owner.id, trusted: true }]);
  const where = { ownerId: owner.id, clientId: trusted.id };
  const { givenAt } = await usher.dataSource.manager.findOneByOrFail(Consent, where);
  await usher.dataSource.manager.update(Consent, where, { givenAt: givenAt - 86_400_001 });
  await code();
  await code();
  expect(await consents()).toHaveLength(2);
});

test('a member sends at most 60 requests a minute; the next ones go back to the application and store nothing', async () => {
  const { browser, owner } = await signedIn(usher);
  for (let n = 0; n < ASK_LIMIT.count; n += 1) expect((await browser.get(authorizePath(client))).status).toBe(200);
  const newest = () =>
    usher.dataSource.manager.findOneOrFail(Authorization, {
      where: { ownerId: owner.id },
      order: { createdAt: 'DESC' },
    });
  const before = await newest();
  const refused = new URL((await browser.get(authorizePath(client))).location);
  expect(refused.href).toMatch(REDIRECT_URI);
  expect(refused.searchParams.get('error')).toBe('temporarily_unavailable');
  expect(refused.searchParams.get('error_description')).toMatch(/^only 60 requests for access a minute are allowed/);
  expect(await newest()).toEqual(before);
});

test('each answer on the consent page is in the audit', async () => {
  const { browser, owner } = await signedIn(usher);
  for (const decision of ['allow', 'allow', 'decline'] as const) await browser.decide(authorizePath(client), decision);
  const audit = usher.running.app.get(AuditLog, { strict: false });
  const events = await audit.list({ actor: `owner:${owner.id}`, subject: `client:${client.id}` });
  expect(events.map(({ action }) => action)).toEqual(['consent.declined', 'consent.given', 'consent.given']);
});

const code = async (browser: TestBrowser, of: TestClient): Promise<string> =>
  (await browser.decide(authorizePath(of))).searchParams.get('code')!;

const openForm = async (browser: TestBrowser, of: TestClient): Promise<string> =>
  fieldsOf((await browser.get(authorizePath(of))).text).form!;

const allow = async (browser: TestBrowser, form: string): Promise<number> =>
  (await browser.post('/auth/consent', { form, decision: 'allow' })).status;

const service = <T>(type: new (...args: never[]) => T): T => usher.running.app.get<T>(type, { strict: false });
const otherUri = { redirectUris: ['https://partner.example/other'] };

test('a form is answered only by the owner to whom it was shown, also in the same browser', async () => {
  const [{ browser: one }, { browser: other }] = [await signedIn(usher), await signedIn(usher)];
  const form = await openForm(one, client);
  // An application's own sign-in does not renew this cookie.
  other.cookies.set('usher-form', one.cookies.get('usher-form')!);
  expect([await allow(other, form), await allow(one, form)]).toEqual([403, 303]);
});

test('a form can be answered for ten minutes, and whatever is not "allow" declines', async () => {
  const { browser, owner } = await signedIn(usher);
  const authorizations = usher.dataSource.getRepository(Authorization);
  const form = await openForm(browser, client);
  await authorizations.decrement({ ownerId: owner.id }, 'expiresAt', 600_000);
  expect(await allow(browser, form)).toBe(403);
  await authorizations.increment({ ownerId: owner.id }, 'expiresAt', 600_000);
  expect(await allow(browser, form)).toBe(303);
  for (const decision of ['', 'ALLOW', 'yes']) {
    const { location } = await browser.post('/auth/consent', { form: await openForm(browser, client), decision });
    expect(new URL(location).searchParams.get('error')).toBe('access_denied');
  }
});

test.each<[string, (id: string) => Promise<unknown>]>([
  ['the tokens of the client are revoked', (id) => usher.clients.revokeTokens(id)],
  [
    'its secret is replaced, with a revocation',
    (id) => service(SecretRotation).rotate(id, 60_000, { revokeTokens: true }),
  ],
  ['its redirect URI is removed', (id) => service(ClientApplications).configure(id, otherUri)],
  [
    'the grant is taken from it, and given again',
    async (id) => {
      const applications = service(ClientApplications);
      await applications.configure(id, { grantTypes: ['client_credentials'] });
      await applications.configure(id, { grantTypes: ['client_credentials', 'authorization_code'] });
    },
  ],
])('no code and no form stays valid when %s', async (_, change) => {
  const of = await application(usher);
  const { browser } = await signedIn(usher);
  const [given, form] = [await code(browser, of), await openForm(browser, of)];
  const { id } = of;
  await change(id);
  expect(await allow(browser, form)).toBe(403);
  const { status, body } = await exchange(of, given);
  expect([status, body.error]).toEqual([400, 'invalid_grant']);
});

test('a code stays valid when another redirect URI is added', async () => {
  const of = await application(usher);
  const { browser } = await signedIn(usher);
  const given = await code(browser, of);
  const redirectUris = [REDIRECT_URI, ...otherUri.redirectUris];
  await service(ClientApplications).configure(of.id, { redirectUris });
  expect((await exchange(of, given)).status).toBe(200);
});

test.each<[string, (id: string) => Promise<unknown>]>([
  ['is disabled', (id) => usher.dataSource.manager.update(Client, { id }, { disabledAt: 1 })],
  ['may not use the grant', (id) => usher.dataSource.manager.update(Client, { id }, { grantTypes: ['refresh_token'] })],
  [
    'has another redirect URI',
    (clientId) => usher.dataSource.manager.update(ClientApplication, { clientId }, otherUri),
  ],
])('an answer to a form that was made while the client changed is refused, if it %s', async (_, change) => {
  const of = await application(usher);
  const { browser } = await signedIn(usher);
  const form = await openForm(browser, of);
  await change(of.id);
  expect(await allow(browser, form)).toBe(403);
});

test('a trusted application gets no code for an account that is closed while it asks', async () => {
  const trusted = await application(usher, { isTrusted: true });
  const { browser, owner } = await signedIn(usher);
  const authorizations = service(Authorizations);
  const ask = authorizations.ask.bind(authorizations);
  jest.spyOn(authorizations, 'ask').mockImplementationOnce(async (...given) => {
    await service(MembersService).setDisabled(owner.name, true);
    return ask(...given);
  });
  const { location } = await browser.get(authorizePath(trusted));
  expect(new URL(location).searchParams.get('error')).toBe('access_denied');
});
