import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { AuditLog } from '../../../../src/audit/audit.module.js';
import { ABSOLUTE_MS as OPERATOR_ABSOLUTE_MS } from '../../../../src/auth/sign-in/sessions.js';
import { digestToken } from '../../../../src/auth/tokens/token.js';
import { OperatorSession } from '../../../../src/operators/operator.entity.js';
import { OPERATOR_IDLE_MS, OperatorSessions } from '../../../../src/operators/operator-sessions.js';
import { OperatorsService } from '../../../../src/operators/operators.service.js';
import { Purge } from '../../../../src/retention/purge.js';
import { OperatorBrowser } from '../../../support/operator-browser.js';
import { TestUsher } from '../../../support/usher.js';

const SESSION = 'usher-ops-session';

let usher: TestUsher;
let operators: OperatorsService;
beforeAll(async () => {
  usher = await TestUsher.start({ OPS_USER: 'first', OPS_PASSWORD: 'the password of the settings' });
  operators = usher.running.app.get(OperatorsService, { strict: false });
});
afterAll(() => usher.stop());

describe('a browser without a session', () => {
  test('is redirected to the sign-in page, and from there back to the page that it asked for', async () => {
    const browser = new OperatorBrowser(usher);
    const sent = await browser.get('/ops/operators?a=b');
    expect([sent.status, sent.location]).toEqual([303, '/ops/sign-in?return_to=%2Fops%2Foperators%3Fa%3Db']);
    const page = await browser.get(sent.location!);
    expect(page.status).toBe(200);
    expect(page.text).toContain('<input type="hidden" name="return_to" value="/ops/operators?a=b" />');
    expect(page.text).not.toMatch(/<script|<nav/);
    const back = await browser.signIn('first', 'the password of the settings', '/ops/operators?a=b');
    expect([back.status, back.location]).toEqual([303, '/ops/operators?a=b']);
    expect((await browser.get(back.location!)).status).toBe(200);
  });

  test.each(['//evil.example', 'https://evil.example', '/ops\\evil', '/opsis', '/ops/sign-in', '/docs', ''])(
    'is not sent to %s after the sign-in',
    async (returnTo) => {
      const { location } = await new OperatorBrowser(usher).signIn('first', 'the password of the settings', returnTo);
      expect(location).toBe('/ops');
    },
  );

  test('is not asked for a password in a window of its own when it sends a form after a sign-out in another tab', async () => {
    const { status, headers, text } = await new OperatorBrowser(usher).post('/ops/operators', {}, { page: null });
    expect([status, headers.get('www-authenticate')]).toEqual([401, 'Session realm="usher ops"']);
    expect(text).toContain('sign in again at /ops/sign-in');
  });

  test('gets 401 where it does not ask for a page', async () => {
    const answer = await new OperatorBrowser(usher).send('GET', '/ops/queues/api/queues', { accept: '*/*' });
    expect(answer.status).toBe(401);
    expect(answer.headers.get('www-authenticate')).toMatch(/^Basic /);
  });
});

describe('a sign-in', () => {
  test('needs the right password, and says nothing about which names exist', async () => {
    await operators.create({ name: 'Mia', password: 'the password of Mia', role: 'operator' });
    const wrong = [
      ['mia', 'another password'],
      ['nobody', 'another password'],
      ['first', 'another password'],
      ['FIRST', 'the password of the settings'],
      ['', ''],
    ];
    for (const [name = '', password = ''] of wrong) {
      const answer = await new OperatorBrowser(usher).signIn(name, password);
      expect([answer.status, answer.headers.get('location')]).toEqual([403, null]);
      expect(answer.text).toContain('The name or the password is wrong.');
    }
    expect((await new OperatorBrowser(usher).signIn('MIA', 'the password of Mia')).status).toBe(303);
  });

  test('makes a new session each time, ends the earlier one, and is in the audit', async () => {
    const browser = await OperatorBrowser.of(usher, 'noah');
    const earlier = browser.cookies.get(SESSION)!;
    await browser.post('/ops/sign-out', {}, { page: '/ops/operators' });
    await browser.signIn('noah', 'a password of the tests');
    expect(browser.cookies.get(SESSION)).not.toBe(earlier);
    browser.cookies.set(SESSION, earlier);
    expect((await browser.get('/ops')).status).toBe(303);
    const audit = usher.running.app.get(AuditLog, { strict: false });
    const events = await audit.list({ action: 'operator.signed-in', subject: 'operator:noah' });
    expect(events.map(({ actor, address }) => [actor, address])).toEqual(
      Array.from({ length: 2 }, () => ['operator:noah', '127.0.0.1']),
    );
  });

  test('ignores a session that somebody else set in the browser', async () => {
    const browser = new OperatorBrowser(usher);
    const planted = 'A'.repeat(43);
    browser.cookies.set(SESSION, planted);
    expect((await browser.signIn('first', 'the password of the settings')).status).toBe(303);
    expect(browser.cookies.get(SESSION)).not.toBe(planted);
  });

  test('has a cookie that no script and no other site can use', async () => {
    const answer = await new OperatorBrowser(usher).signIn('first', 'the password of the settings');
    const [cookie = ''] = answer.headers.getSetCookie().filter((header) => header.startsWith(SESSION));
    expect(cookie).toMatch(/^usher-ops-session=[A-Za-z0-9]{43}; Path=\/; HttpOnly; SameSite=Lax$/);
    const [row] = await usher.dataSource.manager.find(OperatorSession, { order: { createdAt: 'DESC' }, take: 1 });
    expect(cookie).not.toContain(row!.digest);
  });

  test('over https has a cookie that only this host can set', async () => {
    const settings = { USHER_AUTH_URL: 'https://127.0.0.1', TRUST_PROXY: '127.0.0.1' };
    const encrypted = await TestUsher.start(settings);
    const browser = new OperatorBrowser(encrypted);
    const headers = { 'x-forwarded-proto': 'https', accept: 'text/html' };
    await browser.send('GET', '/ops/sign-in', headers);
    expect([...browser.cookies.keys()]).toEqual(['__Host-usher-ops-form']);
    const answer = await browser.send('GET', '/ops/sign-in', headers);
    expect(answer.headers.getSetCookie()).toEqual([]);
    await encrypted.stop();
  });
});

describe('a session', () => {
  const row = async (browser: OperatorBrowser) => {
    const sessions = await usher.dataSource.manager.find(OperatorSession);
    const digest = digestToken(browser.cookies.get(SESSION)!);
    return sessions.find((session) => session.digest === digest)!;
  };
  const change = (session: OperatorSession, times: Partial<OperatorSession>) =>
    usher.dataSource.manager.update(OperatorSession, { digest: session.digest }, times);

  test('is extended by a page, not by what a page refreshes by itself, and ends in any case', async () => {
    const browser = await OperatorBrowser.of(usher, 'olga');
    const session = await row(browser);
    const almost = session.createdAt + 600_000;
    await change(session, { expiresAt: almost });
    await browser.get('/ops', { 'usher-live': '1' });
    await browser.send('GET', '/ops/queues/api/queues', { accept: 'application/json' });
    expect((await row(browser)).expiresAt).toBe(almost);
    await browser.get('/ops/operators');
    expect((await row(browser)).expiresAt).toBeGreaterThanOrEqual(session.createdAt + OPERATOR_IDLE_MS);
    const begun = session.createdAt - OPERATOR_ABSOLUTE_MS + 300_000;
    await change(session, { createdAt: begun, expiresAt: session.createdAt + 120_000 });
    await browser.get('/ops/operators');
    expect((await row(browser)).expiresAt).toBe(begun + OPERATOR_ABSOLUTE_MS);
    await change(session, { expiresAt: 1 });
    expect((await browser.get('/ops')).status).toBe(303);
    const api = await browser.send('GET', '/ops/queues/api/queues', { accept: 'application/json' });
    expect([api.status, api.headers.get('www-authenticate')]).toEqual([401, 'Session realm="usher ops"']);
  });

  test('of the settings’ operator ends when the settings change', async () => {
    const sessions = usher.running.app.get(OperatorSessions, { strict: false });
    const browser = new OperatorBrowser(usher);
    await browser.signIn('first', 'the password of the settings');
    const token = browser.cookies.get(SESSION)!;
    expect(await sessions.find(token, false)).toEqual({ name: 'first', role: 'operator' });
    const { digest } = await row(browser);
    await usher.dataSource.manager.update(OperatorSession, { digest }, { settingsMac: 'of other settings' });
    expect(await sessions.find(token, false)).toBeNull();
  });

  test('is deleted by the purge when it has ended', async () => {
    const [ended, open] = [await OperatorBrowser.of(usher, 'quinn'), await OperatorBrowser.of(usher, 'rosa')];
    await change(await row(ended), { expiresAt: 1 });
    const { operatorSessions } = await usher.running.app.get(Purge, { strict: false }).run();
    expect(operatorSessions).toBeGreaterThan(0);
    expect([await row(ended), (await row(open))?.operatorId]).toEqual([undefined, expect.any(String)]);
  });

  test('can still read what needs no database while the database does not answer', async () => {
    const browser = await OperatorBrowser.of(usher, 'pia');
    await browser.get('/ops/operators');
    const { manager } = usher.dataSource;
    await manager.query('ALTER TABLE usher_operator_session RENAME TO usher_hidden');
    try {
      expect((await browser.send('GET', '/ops/metrics', { accept: 'text/plain' })).status).toBe(200);
      const other = new OperatorBrowser(usher);
      other.cookies.set(SESSION, 'B'.repeat(43));
      expect((await other.get('/ops')).status).toBe(500);
    } finally {
      await manager.query('ALTER TABLE usher_hidden RENAME TO usher_operator_session');
    }
  });
});
