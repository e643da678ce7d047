import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { AuditLog, FailureCounts } from '../../../../src/audit/audit.module.js';
import { OperatorsService } from '../../../../src/operators/operators.service.js';
import { formOf, OperatorBrowser } from '../../../support/operator-browser.js';
import { basic, TestUsher } from '../../../support/usher.js';

const LIMIT = 5;
const FIELDS = { name: 'forged', role: 'operator' };

let usher: TestUsher;
let operators: OperatorsService;
let browser: OperatorBrowser;
beforeAll(async () => {
  usher = await TestUsher.start({ AUTH_FAILURE_LIMIT: `${LIMIT}/h` });
  operators = usher.running.app.get(OperatorsService, { strict: false });
  browser = await OperatorBrowser.of(usher, 'ada');
});
afterAll(() => usher.stop());

describe('a form of a session', () => {
  const form = async (from: OperatorBrowser, page: string, action: string) =>
    formOf((await from.get(page)).text, action) ?? '';

  test.each<[string, () => Promise<Record<string, string>>]>([
    ['without its proof', () => Promise.resolve({})],
    ['with an invented proof', () => Promise.resolve({ form: `${Date.now()}.x.y` })],
    ['with the proof of another form', async () => ({ form: await form(browser, '/ops/operators', '/ops/sign-out') })],
    [
      'with the proof of another session',
      async () => {
        const other = new OperatorBrowser(usher);
        await other.signIn('ada', 'a password of the tests');
        return { form: await form(other, '/ops/operators', '/ops/operators') };
      },
    ],
  ])('is refused %s', async (_, proof) => {
    const answer = await browser.post('/ops/operators', { ...FIELDS, ...(await proof()) }, { page: null });
    expect([answer.status, answer.text.includes('This form is no longer valid')]).toEqual([403, true]);
    expect(await operators.find('forged')).toBeNull();
  });

  test.each<[string, Record<string, string>]>([
    ['of another site', { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' }],
    ['of a page of the same host at another port', { origin: 'http://127.0.0.1:1', 'sec-fetch-site': 'same-site' }],
    ['without an origin', { origin: '', 'sec-fetch-site': '' }],
  ])('is refused with its proof, but %s', async (_, given) => {
    const proof = await form(browser, '/ops/operators', '/ops/operators');
    const body = new URLSearchParams({ ...FIELDS, form: proof }).toString();
    const named = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== ''));
    const headers = { accept: 'text/html', 'content-type': 'application/x-www-form-urlencoded', ...named };
    expect((await browser.send('POST', '/ops/operators', headers, body)).status).toBe(403);
    expect(await operators.find('forged')).toBeNull();
  });

  test('is accepted from its page', async () => {
    expect((await browser.post('/ops/operators', { ...FIELDS, name: 'genuine' })).status).toBe(201);
  });
});

test('a form can be sent once: sending it again changes nothing and says so, and a refused one can be sent again', async () => {
  const page = await browser.get('/ops/clients/new');
  const proof = { form: formOf(page.text, '/ops/clients') ?? '', 'grant.client_credentials': 'yes' };
  const send = (name: string) => browser.post('/ops/clients', { ...proof, name }, { page: null });
  expect((await send('')).status).toBe(422);
  expect((await send('Once')).status).toBe(201);
  const changed = { ...proof, form: `${proof.form}.x`, name: 'Changed' };
  expect((await browser.post('/ops/clients', changed, { page: null })).status).toBe(403);
  const again = await send('Once');
  expect([again.status, again.text.includes('This form was sent before')]).toEqual([409, true]);
  expect(again.text).not.toContain('Nothing was changed');
  expect(again.text).toContain('if you did not see a new secret, issue or replace it');
  const both = await Promise.all([1, 2].map(async () => (await send('Twice')).status));
  expect(both).toEqual([409, 409]);
  expect((await usher.clients.list()).filter(({ name }) => ['Once', 'Twice', 'Changed'].includes(name))).toHaveLength(
    1,
  );
});

test('a value that another operator has changed meanwhile is shown, and not overwritten', async () => {
  const { id } = await usher.client('https://cinema.example/first');
  const page = `/ops/clients/${id}`;
  const { text } = await browser.get(page);
  const seen = (text: string) => /\/notify-url"[^]*?name="seen" value="([^"]*)"/.exec(text)?.[1] ?? '';
  const send = (from: string) => {
    const proof = formOf(from, `${page}/notify-url`) ?? '';
    const fields = { form: proof, seen: seen(from).replaceAll('&amp;', '&'), notifyUrl: 'https://cinema.example/mine' };
    return browser.post(`${page}/notify-url`, fields, { page: null });
  };
  await usher.clients.setNotifyUrl(id, 'https://cinema.example/theirs');
  const refused = await send(text);
  expect([refused.status, refused.text.includes('changed meanwhile to “https://cinema.example/theirs”')]).toEqual([
    409,
    true,
  ]);
  expect(refused.text).toContain('value="https://cinema.example/mine"');
  expect((await usher.clients.get(id)).notifyUrl).toBe('https://cinema.example/theirs');
  expect((await send(refused.text)).status).toBe(303);
  expect((await usher.clients.get(id)).notifyUrl).toBe('https://cinema.example/mine');
});

test('a second client with the same name needs a confirmation', async () => {
  await usher.client();
  const [{ name = '' } = {}] = await usher.clients.list();
  const fields = { name: name.toUpperCase(), 'grant.client_credentials': 'yes' };
  const asked = await browser.post('/ops/clients', fields, { page: '/ops/clients/new' });
  expect([asked.status, asked.text.includes('There is already a client with this name')]).toEqual([422, true]);
  const proof = { form: formOf(asked.text, '/ops/clients') ?? '' };
  expect((await browser.post('/ops/clients', { ...fields, ...proof, isSameName: 'yes' }, { page: null })).status).toBe(
    201,
  );
});

describe('the form of the sign-in', () => {
  const PASSWORD = 'a password of the tests';

  test('is refused without its cookie and from another site, so that nobody is signed in to a foreign account', async () => {
    const other = new OperatorBrowser(usher);
    const form = formOf((await other.get('/ops/sign-in')).text, '/ops/sign-in')!;
    const fields = { name: 'ada', password: PASSWORD, form };
    const foreign = { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' };
    expect((await other.post('/ops/sign-in', fields, { page: null, headers: foreign })).status).toBe(403);
    other.cookies.clear();
    const answer = await other.post('/ops/sign-in', fields, { page: null });
    expect([answer.status, answer.text.includes('your browser must accept cookies')]).toEqual([403, true]);
    expect(other.cookies.has('usher-ops-session')).toBe(false);
  });

  test('shows what was typed as text', async () => {
    const { text } = await new OperatorBrowser(usher).signIn('"><script>alert(1)</script>', PASSWORD);
    expect(text).not.toContain('<script');
  });

  test('answers 429 after too many wrong passwords of a name, also to the right one, and counts them', async () => {
    await operators.create({ name: 'guessed', password: PASSWORD, role: 'operator' });
    const signIn = (name: string, password: string) => new OperatorBrowser(usher).signIn(name, password);
    const guesses = Array.from({ length: 3 * LIMIT }, (_, n) => signIn('guessed', `a wrong password ${n}`));
    const statuses = (await Promise.all(guesses)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 403)).toHaveLength(LIMIT);
    const right = await signIn('GUESSED', PASSWORD);
    expect([right.status, right.text.includes('Too many attempts')]).toEqual([429, true]);
    expect((await signIn('ada', PASSWORD)).status).toBe(303);
    const { body } = await usher.request('GET', '/ops/metrics', { authorization: basic('ops', 'ops') });
    expect(body.text).toMatch(new RegExp(`usher_operator_sign_ins_total{result="blocked"} ${2 * LIMIT + 1}\n`));
    await usher.running.app.get(FailureCounts, { strict: false }).flush();
    const audit = usher.running.app.get(AuditLog, { strict: false });
    const [event] = await audit.list({ subject: 'operator:guessed', action: 'operator.authentication-failed' });
    expect(event).toMatchObject({ address: '127.0.0.1', detail: { failed: LIMIT, blocked: 2 * LIMIT + 1 } });
  });
});
