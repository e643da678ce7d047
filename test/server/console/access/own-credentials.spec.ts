import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { OperatorBrowser } from '../../../support/operator-browser.js';
import { basic, OWN_CREDENTIALS, TestUsher } from '../../../support/usher.js';
import { signedIn, startWithIssuer } from '../../../auth/authorize/support.js';

const METRICS = { authorization: basic('prometheus', 'the password of metrics') };
const CONSOLE = 'https://ops.example';

let usher: TestUsher;
beforeAll(async () => {
  usher = await startWithIssuer({
    ...OWN_CREDENTIALS,
    OPS_PORT: '0',
    OPS_PUBLIC_URL: CONSOLE,
    METRICS_USER: 'prometheus',
    METRICS_PASSWORD: 'the password of metrics',
  });
});
afterAll(() => usher.stop());

describe('METRICS_USER and METRICS_PASSWORD', () => {
  const statusOf = async (method: string, path: string, headers: Record<string, string> = METRICS) =>
    (await usher.atOpsPort().request(method, path, headers)).status;

  test('open the metrics, as the operator’s credentials do', async () => {
    expect(await statusOf('GET', '/ops/metrics')).toBe(200);
    expect(await statusOf('GET', '/ops/metrics', { authorization: basic('ops', 'ops') })).toBe(200);
    expect(await statusOf('GET', '/ops/metrics', { authorization: basic('prometheus', 'ops') })).toBe(401);
    expect(await statusOf('GET', '/ops/metrics', { authorization: basic('ops', 'the password of metrics') })).toBe(401);
    const { body } = await usher.atOpsPort().request('GET', '/ops/metrics', METRICS);
    for (const credential of ['operator', 'metrics'])
      expect(body.text).toContain(`usher_authentication_failures_total{credential="${credential}"} 1\n`);
  });

  test.each([
    ['GET', '/ops'],
    ['GET', '/ops/metrics/'],
    ['GET', '/ops/queues/api/queues'],
    ['GET', '/ops/operators'],
    ['POST', '/ops/operators'],
    ['POST', '/internal/movie-orders/x/complete'],
    ['POST', '/auth/introspect'],
    ['POST', '/auth/token'],
    ['GET', '/docs/internal.json'],
  ])('open nothing else: %s %s', async (method, path) => {
    expect(await statusOf(method, path)).toBe(401);
  });

  test('do not sign in at the console', async () => {
    const browser = new OperatorBrowser(usher.atOpsPort());
    const headers = { origin: CONSOLE };
    const page = await browser.get('/ops/sign-in');
    const [, form = ''] = /name="form" value="([^"]+)"/.exec(page.text) ?? [];
    const body = new URLSearchParams({ form, name: 'prometheus', password: 'the password of metrics' }).toString();
    const type = { accept: 'text/html', 'content-type': 'application/x-www-form-urlencoded' };
    expect((await browser.send('POST', '/ops/sign-in', { ...type, ...headers }, body)).status).toBe(403);
  });
});

describe('OPS_PUBLIC_URL', () => {
  test('decides the cookies: over https only this host can set them, whatever the proxy says', async () => {
    const browser = new OperatorBrowser(usher.atOpsPort());
    await browser.get('/ops/sign-in');
    expect([...browser.cookies.keys()]).toEqual(['__Host-usher-ops-form']);
  });

  test('decides the origin: a form of another address of the console is refused', async () => {
    const browser = new OperatorBrowser(usher.atOpsPort());
    const from = async (origin: string) =>
      (await browser.post('/ops/sign-in', { name: 'ops', password: 'ops' }, { headers: { origin } })).status;
    expect(await from(usher.running.opsUrl)).toBe(403);
    expect(await from(usher.running.url)).toBe(403);
    expect(await from(CONSOLE)).toBe(303);
    const names = ['form', 'known', 'session'].map((name) => `__Host-usher-ops-${name}`);
    expect([...browser.cookies.keys()].sort()).toEqual(names);
  });

  test('is the address of the internal operations, and over https browsers are told to keep to it', async () => {
    const internal = { authorization: basic('internal', 'internal') };
    const { body, headers } = await usher.atOpsPort().request('GET', '/docs/internal.json', internal);
    expect(body.servers).toEqual([expect.objectContaining({ url: CONSOLE })]);
    expect(headers.get('strict-transport-security')).toBe('max-age=31536000');
  });

  test('over http leaves the cookies without a prefix, although clients use https', async () => {
    const plain = await TestUsher.start({
      ...OWN_CREDENTIALS,
      TRUST_PROXY: '1',
      USHER_AUTH_URL: 'https://auth.example',
      OPS_PUBLIC_URL: 'http://ops.internal:3001',
    });
    const browser = new OperatorBrowser(plain);
    const headers = { accept: 'text/html', 'x-forwarded-proto': 'https', host: 'auth.example' };
    await browser.send('GET', '/ops/sign-in', headers);
    expect([...browser.cookies.keys()]).toEqual(['usher-ops-form']);
    await plain.stop();
  });
});

test('without INTERNAL_USER an operator reads the internal operations, also by the session, and nobody else does', async () => {
  const { INTERNAL_USER: _, INTERNAL_PASSWORD: __, ...others } = OWN_CREDENTIALS;
  // A loopback address, but not one for which INTERNAL_USER has a default.
  const alone = await TestUsher.start({ ...others, HOST: '127.1' });
  const browser = await OperatorBrowser.of(alone, 'reader', 'viewer');
  const signedOut = new OperatorBrowser(alone);
  for (const path of ['/docs/internal', '/docs/internal.json'])
    expect([(await browser.get(path)).status, (await signedOut.get(path)).status]).toEqual([200, 401]);
  await alone.stop();
});

test('the cookies of members and of the console have different names, and neither site accepts a session of the other', async () => {
  const { browser: member } = await signedIn(usher);
  const operator = new OperatorBrowser(usher.atOpsPort());
  const signIn = { name: 'ops', password: 'ops' };
  expect((await operator.post('/ops/sign-in', signIn, { headers: { origin: CONSOLE } })).status).toBe(303);
  const [ofMember, ofOperator] = [member.cookies, operator.cookies].map((cookies) =>
    [...cookies].find(([name]) => name.endsWith('-session'))!,
  );
  expect([ofMember![0], ofOperator![0]]).toEqual(['usher-session', '__Host-usher-ops-session']);
  const opens = async (url: string, cookie: string) => {
    const answer = await fetch(url, { headers: { cookie, accept: 'text/html' }, redirect: 'manual' });
    return answer.status === 200;
  };
  const { url, opsUrl } = usher.running;
  expect(await opens(`${opsUrl}/ops`, ofOperator!.join('='))).toBe(true);
  expect(await opens(`${url}/auth/connections`, ofMember!.join('='))).toBe(true);
  for (const cookie of [ofMember!.join('='), `${ofOperator![0]}=${ofMember![1]}`])
    expect(await opens(`${opsUrl}/ops`, cookie)).toBe(false);
  for (const cookie of [ofOperator!.join('='), `${ofMember![0]}=${ofOperator![1]}`])
    expect(await opens(`${url}/auth/connections`, cookie)).toBe(false);
});
