import { afterAll, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { AuditLog } from '../../../../src/audit/audit.module.js';
import { seal } from '../../../../src/http/pages/form-tokens.js';
import { OperatorSessions } from '../../../../src/operators/operator-sessions.js';
import { OperatorsService } from '../../../../src/operators/operators.service.js';
import { OperatorBrowser } from '../../../support/operator-browser.js';
import { basic, TestUsher } from '../../../support/usher.js';

let usher: TestUsher;
let operators: OperatorsService;
let viewer: OperatorBrowser;
let operator: OperatorBrowser;
let count = 0;
beforeAll(async () => {
  usher = await TestUsher.start({ AUTH_FAILURE_LIMIT: '5/h' });
  operators = usher.running.app.get(OperatorsService, { strict: false });
  viewer = await OperatorBrowser.of(usher, 'viewer', 'viewer');
  operator = await OperatorBrowser.of(usher, 'operator');
});
afterAll(() => usher.stop());

/** An operator whom the tests change. */
let subject: string;
beforeEach(async () => {
  subject = `subject-${(count += 1)}`;
  await operators.create({ name: subject, password: 'a password of the tests', role: 'operator' });
});

const page = () => `/ops/operators/${subject}`;

describe('a viewer', () => {
  test('reads every page and sees no form that changes anything', async () => {
    for (const path of ['/ops', '/ops/operators', page(), '/ops/queues', '/ops/metrics']) {
      const { status, text } = await viewer.get(path);
      expect({ path, status }).toEqual({ path, status: 200 });
      const forms = [...text.matchAll(/<form\b[^>]*method="post"[^>]*action="([^"]*)"/g)].map(([, action]) => action);
      expect(forms.filter((action) => action !== '/ops/sign-out')).toEqual([]);
    }
  });

  test.each([
    ['POST', '/ops/operators'],
    ['POST', '/ops/operators/operator/disable'],
    ['POST', '/ops/webhooks/none/resend'],
    ['PUT', '/ops/queues/api/queues/usher-webhook/pause'],
    ['PUT', '/ops/queues/api/queues/usher-webhook/none/retry'],
    ['PATCH', '/ops/queues/api/queues/usher-webhook/none/delay'],
    ['DELETE', '/ops/nothing'],
  ])('%s %s is refused with the reason', async (method, path) => {
    const headers = { accept: 'text/html', origin: usher.running.url, 'sec-fetch-site': 'same-origin' };
    const answer = await viewer.send(method, path, headers);
    expect(answer.status).toBe(403);
    expect(answer.text).toContain('Your role is viewer, which can read but not change anything');
  });

  test('can change their own password and sign out', async () => {
    const browser = await OperatorBrowser.of(usher, `own-${count}`, 'viewer');
    const wrong = await browser.post('/ops/password', { current: 'wrong', password: 'another password' });
    expect(wrong.text).toContain('The current password is wrong.');
    const fields = { current: 'a password of the tests', password: 'another password' };
    const { status, location } = await browser.post('/ops/password', fields);
    expect([status, location]).toEqual([303, '/ops/password?done=change']);
    expect((await browser.get('/ops')).status).toBe(200);
    const out = await browser.post('/ops/sign-out', {}, { page: '/ops/password' });
    expect([out.status, out.location]).toEqual([303, '/ops/sign-in']);
    expect((await browser.get('/ops')).status).toBe(303);
    expect((await new OperatorBrowser(usher).signIn(`own-${count}`, 'another password')).status).toBe(303);
  });
});

describe('an operator', () => {
  test('creates an operator, whose password is shown once', async () => {
    const name = `New-${count}`;
    const created = await operator.post('/ops/operators', { name, role: 'viewer' });
    expect(created.status).toBe(201);
    const [, password = ''] = /data-copy="([A-Za-z0-9]{20})"/.exec(created.text) ?? [];
    expect((await new OperatorBrowser(usher).signIn(name, password)).status).toBe(303);
    expect((await operator.get(`/ops/operators/${name}`)).text).not.toContain(password);
    const again = await operator.post('/ops/operators', { name, role: 'viewer' });
    expect([again.status, again.text.includes('already exists')]).toEqual([409, true]);
    for (const fields of [{ name: 'with space' }, { name: 'ops' }, { name: 'x', role: 'root' }])
      expect((await operator.post('/ops/operators', { role: 'viewer', ...fields })).status).toBeGreaterThan(400);
  });

  test('disables an operator, which ends the sessions at once, and enables them again', async () => {
    const browser = new OperatorBrowser(usher);
    await browser.signIn(subject, 'a password of the tests');
    const answer = await operator.post(`${page()}/disable`, {}, { page: page() });
    expect([answer.status, answer.location]).toEqual([303, `${page()}?done=disable`]);
    expect((await operator.get(`${page()}?done=disable`)).text).toContain('The operator is disabled.');
    expect((await browser.get('/ops')).status).toBe(303);
    expect((await browser.signIn(subject, 'a password of the tests')).status).toBe(403);
    await operator.post(`${page()}/enable`, {}, { page: page() });
    expect((await browser.signIn(subject, 'a password of the tests')).status).toBe(303);
  });

  test('makes a new password, which ends the sessions', async () => {
    const browser = new OperatorBrowser(usher);
    await browser.signIn(subject, 'a password of the tests');
    const { text } = await operator.post(`${page()}/password`, {}, { page: page() });
    expect((await browser.get('/ops')).status).toBe(303);
    const [, password = ''] = /data-copy="([A-Za-z0-9]{20})"/.exec(text) ?? [];
    expect((await browser.signIn(subject, password)).status).toBe(303);
  });

  test.each([
    ['before', 409],
    ['after', 303],
  ])('makes a new password %s the old one is changed with it: only the new one signs in', async (when, status) => {
    const browser = new OperatorBrowser(usher);
    await browser.signIn(subject, 'a password of the tests');
    const sessions = usher.running.app.get(OperatorSessions, { strict: false });
    const [confirm, get] = [sessions.confirm.bind(sessions), operators.get.bind(operators)];
    const reset = () => operators.setPassword(subject, 'the password of a reset');
    if (when === 'before')
      jest.spyOn(sessions, 'confirm').mockImplementationOnce((...given) => confirm(...given).finally(reset));
    else {
      const read = jest.spyOn(operators, 'get').mockImplementationOnce(get).mockImplementationOnce(get);
      // Once the change is committed the account is read again.
      read.mockImplementationOnce((name) => reset().then(() => get(name)));
    }
    const fields = { current: 'a password of the tests', password: 'another password' };
    expect((await browser.post('/ops/password', fields)).status).toBe(status);
    expect((await browser.get('/ops')).status).toBe(303);
    expect((await browser.signIn(subject, 'another password')).status).toBe(403);
    expect((await browser.signIn(subject, 'the password of a reset')).status).toBe(303);
  });

  test('sets a role, which holds with the next request of an open session', async () => {
    const browser = new OperatorBrowser(usher);
    await browser.signIn(subject, 'a password of the tests');
    await operator.post(`${page()}/role`, { role: 'viewer' }, { page: page() });
    expect((await browser.post('/ops/operators', { name: 'x', role: 'viewer' })).status).toBe(403);
    expect((await operators.get(subject)).role).toBe('viewer');
  });

  test('cannot lock themselves out', async () => {
    const own = '/ops/operators/operator';
    const shown = await operator.get(own);
    expect(shown.text).not.toContain(`action="${own}/`);
    for (const [action, fields] of [
      ['disable', {}],
      ['role', { role: 'viewer' }],
      ['password', {}],
    ] as const) {
      const form = seal(operator.cookies.get('usher-ops-session')!, `${own}/${action}`);
      const answer = await operator.post(`${own}/${action}`, { ...fields, form }, { page: null });
      expect([answer.status, answer.text.includes('This is your own account')]).toEqual([409, true]);
    }
    expect(await operators.get('operator')).toMatchObject({ role: 'operator', disabledAt: null });
  });

  test('is named in the audit of each change', async () => {
    await operator.post(`${page()}/disable`, {}, { page: page() });
    await usher.request('POST', `${page()}/enable`, {
      authorization: basic('ops', 'ops'),
      'content-type': 'application/x-www-form-urlencoded',
    });
    const audit = usher.running.app.get(AuditLog, { strict: false });
    const events = await audit.list({ subject: `operator:${subject}` });
    expect(events.map(({ action, actor }) => [action, actor])).toEqual([
      ['operator.enabled', 'operator:ops'],
      ['operator.disabled', 'operator:operator'],
      ['operator.created', 'system'],
    ]);
  });
});
