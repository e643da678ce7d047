import { createHmac } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { TestUsher } from '../../support/usher.js';
import { fieldsOf, member, PASSWORD, startWithIssuer, TestBrowser } from '../../auth/authorize/support.js';

let usher: TestUsher;

beforeAll(async () => {
  usher = await startWithIssuer();
});
afterAll(() => usher.stop());

test('the pages set cookies that neither scripts nor other sites can use, and over https no other host', async () => {
  const { name } = await member(usher);
  const browser = new TestBrowser(usher.running.url);
  const form = await browser.get('/auth/sign-in');
  const session = await browser.post('/auth/sign-in', {
    form: fieldsOf(form.text).form!,
    return_to: '',
    name,
    password: PASSWORD,
  });
  const isPlain = /^usher-(form|session|known)=[\w.-]+; Path=\/; HttpOnly; SameSite=Lax(; Max-Age=15552000)?$/;
  for (const { headers } of [form, session]) for (const line of headers.getSetCookie()) expect(line).toMatch(isPlain);
  expect(session.headers.getSetCookie()).toHaveLength(3);

  const secure = await TestUsher.start({ USHER_AUTH_URL: 'https://auth.example' });
  const { headers } = await new TestBrowser(secure.running.url).get('/auth/sign-in');
  const isSecure = /^__Host-usher-form=[A-Za-z0-9]{43}; Path=\/; HttpOnly; SameSite=Lax; Secure$/;
  expect(headers.getSetCookie()).toEqual([expect.stringMatching(isSecure)]);
  await secure.stop();
});

test('a sealed form is valid for an hour', async () => {
  const { name } = await member(usher);
  const browser = new TestBrowser(usher.running.url);
  await browser.get('/auth/sign-in');
  const sealedAt = (time: number): string => {
    const message = `${time}.${'n'.repeat(43)}`;
    const mac = createHmac('sha256', browser.cookies.get('usher-form')!).update(`/auth/sign-in\n${message}`);
    return `${message}.${mac.digest('base64url')}`;
  };
  const statusAt = async (time: number): Promise<number> =>
    (await browser.post('/auth/sign-in', { form: sealedAt(time), return_to: '', name, password: PASSWORD })).status;
  expect(await statusAt(Date.now() - 3_600_000)).toBe(403);
  expect(await statusAt(Date.now() + 3_700_000)).toBe(403);
  expect(await statusAt(Date.now() - 3_500_000)).toBe(303);
});

test('of two cookies of one name neither counts, because another host of the domain may have set one', async () => {
  const { name } = await member(usher);
  const browser = new TestBrowser(usher.running.url);
  await browser.signIn(name);
  const own = `usher-session=${browser.cookies.get('usher-session')}`;
  const other = `usher-session=${'A'.repeat(43)}`;
  const open = async (cookie: string) => (await browser.get('/auth/connections', { cookie })).status;
  expect(await Promise.all([own, `${own}; ${other}`, `${other}; ${own}`].map(open))).toEqual([200, 303, 303]);
});

test('a member is signed out only by a form of the sign-out page, and forms of before are void then', async () => {
  const { name } = await member(usher);
  const browser = new TestBrowser(usher.running.url);
  await browser.signIn(name);
  const formAt = async (path: string) => fieldsOf((await browser.get(path)).text).form!;
  const signOut = async (form: string) => (await browser.post('/auth/sign-out', { form })).status;
  for (const form of ['', 'x'.repeat(43), await formAt('/auth/sign-in')]) expect(await signOut(form)).toBe(403);
  expect((await browser.get('/auth/connections')).status).toBe(200);
  const [form, other] = [await formAt('/auth/sign-out'), await formAt('/auth/sign-out')];
  expect([await signOut(form), await signOut(other)]).toEqual([303, 403]);
});
