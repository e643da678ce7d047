import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { BACKEND } from '../../support/backend.js';
import { TestReceiver } from '../../support/receiver.js';
import { basic, TestUsher } from '../../support/usher.js';

const OPERATOR = { authorization: basic('ops', 'ops') };
const CONFIDENTIAL_PAYLOAD = {
  bookingId: 'BK-CONFIDENTIAL',
  transactionId: 'TX-CONFIDENTIAL',
  qrCode: 'QR-CONFIDENTIAL',
};

let usher: TestUsher;
beforeAll(async () => {
  usher = await TestUsher.start({ OPS_USER: 'ops', OPS_PASSWORD: 'ops' });
});
afterAll(() => usher.stop());

/** Sends a request with exactly this target, which an HTTP client would normalise. Returns the response's text. */
async function raw(method: string, target: string, headers: Record<string, string> = {}): Promise<string> {
  const { hostname, port } = new URL(usher.running.url);
  const socket = connect(Number(port), hostname);
  const lines = Object.entries({ host: 'localhost', connection: 'close', ...headers }).map(
    ([k, v]) => `${k}: ${v}\r\n`,
  );
  socket.write(`${method} ${target} HTTP/1.1\r\n${lines.join('')}\r\n`);
  return Buffer.concat(await socket.toArray()).toString();
}

const PAGES = [
  '/ops',
  '/ops/',
  '/ops/queues',
  '/ops/queues/',
  '/ops/queues/api/queues',
  '/ops/queues/queue/usher-webhook',
  '/ops/queues/static/js/main.js',
  '/ops/queues/static/../api/queues',
  '/ops/metrics',
  '/ops/nothing/here',
];
const SPELLINGS = [
  '/%6fps/queues',
  '/%6F%70%73/queues/api/queues',
  '/o%70s%2Fqueues',
  '//ops/queues',
  '///ops//queues/api/queues',
  '/OPS/queues',
  '/Ops/Queues/api/queues',
  '/ops?x',
  '/ops/queues?activeQueue=webhook',
  '/ops%',
  'http://localhost/ops/queues',
  'http://elsewhere/ops/queues/api/queues',
];

test('with unsafe defaults only a loopback Host is answered, on every path', async () => {
  const local = await TestUsher.start();
  const { hostname, port } = new URL(local.running.url);
  const statusOf = async (path: string, host: string): Promise<number> => {
    const socket = connect(Number(port), hostname);
    const lines = ['host: ' + host, 'connection: close', `authorization: ${OPERATOR.authorization}`];
    socket.write(`GET ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
    return Number(
      Buffer.concat(await socket.toArray())
        .toString()
        .slice('HTTP/1.1 '.length, 'HTTP/1.1 200'.length),
    );
  };
  // A database server has no unsafe defaults.
  const refused = BACKEND === 'embedded' ? 421 : 200;
  for (const path of ['/ops', '/ops/queues', '/health/live', '/docs']) {
    for (const host of ['localhost', `localhost:${port}`, '127.0.0.1', '127.9.9.9:1', `[::1]:${port}`, 'LOCALHOST'])
      expect({ path, host, status: await statusOf(path, host) }).toEqual({ path, host, status: 200 });
    for (const host of [
      'evil.example',
      `evil.example:${port}`,
      '127.0.0.1.evil.example',
      'localhost.evil.example',
      '192.0.2.1',
    ])
      expect({ path, host, status: await statusOf(path, host) }).toEqual({ path, host, status: refused });
  }
  await local.stop();
});

describe('without the operator’s credentials', () => {
  test.each([...PAGES, ...SPELLINGS])('GET %s is answered 401 with a challenge', async (target) => {
    const answer = await raw('GET', target);
    if (target === '/ops%') expect(answer).toMatch(/^HTTP\/1\.1 40[01] /);
    else
      expect(answer).toMatch(/^HTTP\/1\.1 401 [^]*\r\nwww-authenticate: Basic realm="usher ops", charset="UTF-8"\r\n/i);
    expect(answer).not.toContain('retry-run');
  });

  test.each(['HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])('%s is answered 401 too', async (method) => {
    for (const target of [
      '/ops',
      '/ops/queues',
      '/ops/queues/api/queues',
      '/ops/queues/api/queues/usher-webhook/pause',
    ])
      expect(await raw(method, target)).toMatch(/^HTTP\/1\.1 401 /);
  });

  test.each([
    ['another password', basic('ops', 'other')],
    ['another user', basic('root', 'ops')],
    ['a token', 'Bearer ops:ops'],
    ['empty credentials', 'Basic '],
  ])('%s is answered 401', async (_, authorization) => {
    expect((await usher.request('GET', '/ops/queues', { authorization })).status).toBe(401);
  });

  test('a path that only starts with /ops is not protected and is 404', async () => {
    expect(await raw('GET', '/opsis')).toMatch(/^HTTP\/1\.1 404 /);
  });
});

describe('with the operator’s credentials', () => {
  test('the page and its static files are served', async () => {
    const page = await usher.request('GET', '/ops/queues', OPERATOR);
    expect(page.status).toBe(200);
    const [, file = ''] = /src="(?:\/ops\/queues\/)?(static\/[^"]+\.js)"/.exec(String(page.body.text)) ?? [];
    const script = `/ops/queues/${file}`;
    expect((await usher.request('GET', script, OPERATOR)).status).toBe(200);
    expect((await usher.request('GET', script, {})).status).toBe(401);
  });

  test('the API shows every queue', async () => {
    const { status, body } = await usher.request('GET', '/ops/queues/api/queues', OPERATOR);
    expect(status).toBe(200);
    const names = (body.queues as { name: string }[]).map(({ name }) => name);
    expect(names).toEqual(['usher-webhook', 'usher-retry-run', 'usher-purge', 'usher-sandbox-operator']);
  });

  test('a queue can be paused and resumed', async () => {
    for (const action of ['pause', 'resume'])
      expect((await usher.request('PUT', `/ops/queues/api/queues/usher-retry-run/${action}`, OPERATOR)).status).toBe(
        200,
      );
  });

  test.each([
    ['Sec-Fetch-Site: cross-site', { 'sec-fetch-site': 'cross-site' }],
    ['Sec-Fetch-Site: same-site', { 'sec-fetch-site': 'same-site' }],
    ['the Origin of another host', { origin: 'https://evil.example' }],
    ['the Origin of another port', { origin: 'http://127.0.0.1:1' }],
    ['the Origin of a host that ends like this one', { origin: 'http://evil-localhost' }],
    ['Origin: null', { origin: 'null' }],
    ['no Origin but the Referer of another host', { referer: 'https://evil.example/page' }],
    ['no Origin but a Referer that is no URL', { referer: 'evil' }],
  ])('a write with %s is refused', async (_, headers) => {
    for (const method of ['PUT', 'POST', 'DELETE']) {
      const answer = await raw(method, '/ops/queues/api/queues/usher-retry-run/pause', { ...OPERATOR, ...headers });
      expect(answer).toMatch(/^HTTP\/1\.1 403 /);
    }
    const { body } = await usher.request('GET', '/ops/queues/api/queues', OPERATOR);
    const paused = (body.queues as { isPaused: boolean }[]).map(({ isPaused }) => isPaused);
    expect(paused).toEqual([false, false, false, false]);
  });

  test('a write that a page without encryption sends to the encrypted address is refused', async () => {
    const encrypted = await TestUsher.start({ USHER_AUTH_URL: 'https://127.0.0.1', TRUST_PROXY: '127.0.0.1' });
    const statusOf = async (headers: Record<string, string>): Promise<number> => {
      const path = '/ops/queues/api/queues/usher-retry-run/resume';
      return (await encrypted.request('PUT', path, { ...OPERATOR, ...headers })).status;
    };
    const { host } = new URL(encrypted.running.url);
    expect(await statusOf({ origin: `http://${host}` })).toBe(200);
    expect(await statusOf({ origin: `https://${host}` })).toBe(200);
    for (const header of ['origin', 'referer']) {
      expect(await statusOf({ 'x-forwarded-proto': 'https', [header]: `http://${host}` })).toBe(403);
      expect(await statusOf({ 'x-forwarded-proto': 'https', [header]: `https://${host}` })).toBe(200);
    }
    await encrypted.stop();
  });

  test('every response has a policy without frames of other sites, nosniff and no-store', async () => {
    const page = await usher.request('GET', '/ops/queues', OPERATOR);
    const [, script = ''] = /src="(static\/js\/main[^"]+\.js)"/.exec(String(page.body.text)) ?? [];
    const paths = [
      '/ops',
      '/ops/metrics',
      '/ops/nothing',
      '/ops/queues',
      '/ops/queues/api/queues',
      `/ops/queues/${script}`,
    ];
    const ancestors = (path: string): string => (path.startsWith('/ops/queues') ? "'self'" : "'none'");
    for (const path of [...paths, '/ops/queues/api/queues/none/none', '/ops/queues/static/none.js']) {
      for (const headers of [OPERATOR, {}]) {
        const answer = await usher.request('GET', path, headers);
        const shown = { path, status: answer.status, policy: answer.headers.get('content-security-policy') };
        expect(shown).toEqual({ ...shown, policy: expect.stringContaining(`frame-ancestors ${ancestors(path)}`) });
        expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
        expect(answer.headers.get('cache-control')).toBe('no-store');
      }
    }
    expect(page.body.text).not.toMatch(/https?:\/\//);
    expect(script).not.toBe('');
  });

  test('a write from its own page is accepted', async () => {
    const headers = { ...OPERATOR, origin: usher.running.url, 'sec-fetch-site': 'same-origin' };
    expect((await usher.request('PUT', '/ops/queues/api/queues/usher-retry-run/pause', headers)).status).toBe(200);
    expect((await usher.request('PUT', '/ops/queues/api/queues/usher-retry-run/resume', headers)).status).toBe(200);
  });

  test('a job shows only identifiers, no payload and no secret', async () => {
    const receiver = await TestReceiver.start();
    const client = await usher.client(receiver.url);
    const key = await client.order();
    await client.complete(key, CONFIDENTIAL_PAYLOAD);
    const { id } = await usher.webhook(key, 'SUCCESS');
    const { status, body } = await usher.request('GET', `/ops/queues/api/queues/usher-webhook/${id}`, OPERATOR);
    expect(status).toBe(200);
    const { data } = body.job as { data: unknown };
    expect(data).toEqual({ webhook: id, reference: key, client: client.id, host: new URL(receiver.url).host });
    expect(JSON.stringify(body)).not.toContain('CONFIDENTIAL');
    expect(JSON.stringify(body)).not.toContain(client.secret);
    receiver.close();
  });
});
