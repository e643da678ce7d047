import { verifyNotification } from 'usher-receiver';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { AuditAction, AuditEvent } from '../../src/audit/audit-event.entity.js';
import { AuditLog, FailureCounts } from '../../src/audit/audit.module.js';
import { ClientSecret } from '../../src/clients/client.entity.js';
import { answer, TestReceiver } from '../support/receiver.js';
import { type Answer, basic, TestClient, TestUsher } from '../support/usher.js';

let usher: TestUsher;
let receiver: TestReceiver;
let client: TestClient;

beforeAll(async () => {
  usher = await TestUsher.shared();
  receiver = await TestReceiver.start();
});
afterAll(() => void receiver.close());
beforeEach(async () => {
  client = await usher.client('https://earlier.example/notify');
  receiver.behaviour = answer(200);
});

const call = (secret: string, method: string, path: string, body?: unknown, more = {}): Promise<Answer> =>
  usher.request(method, path, { authorization: basic(client.id, secret), ...more }, body);

const rotate = (secret: string, key: string): Promise<Answer> =>
  call(secret, 'POST', '/client/secret/rotate', undefined, { 'idempotency-key': key });

const finish = (secret: string): Promise<Answer> => call(secret, 'POST', '/client/secret/finish');

const audited = (action: AuditAction): Promise<AuditEvent[]> =>
  usher.running.app.get(AuditLog, { strict: false }).list({ action, subject: `client:${client.id}` });

const notifyUrl = async (): Promise<string | null> => (await usher.clients.get(client.id)).notifyUrl;

const authenticates = async (secret: string): Promise<boolean> =>
  (await new TestClient(usher, client.id, secret).token()).status === 200;

const ROUTES = [
  ['GET', '/client'],
  ['PUT', '/client/notify-url'],
  ['POST', '/client/secret/rotate'],
  ['POST', '/client/secret/finish'],
] as const;

describe('the routes of an account', () => {
  test.each(ROUTES)('%s %s takes no access token and no wrong secret, and is not cached', async (method, path) => {
    const token = String((await client.token()).body.access_token);
    for (const authorization of [`Bearer ${token}`, basic(client.id, 'wrong'), basic('nobody', 'wrong')]) {
      const { status, headers } = await usher.request(method, path, { authorization });
      expect(status).toBe(401);
      expect(headers.get('www-authenticate')).toContain('Basic realm="usher"');
      expect(headers.get('cache-control')).toBe('no-store');
    }
    const { headers } = await call(client.secret, method, path);
    expect(headers.get('cache-control')).toBe('no-store');
  });

  test('share the limit against guessing with the token endpoints, and failures are in the audit', async () => {
    const counts = usher.running.app.get(FailureCounts, { strict: false });
    // Those of other clients: they would take the place of this one's.
    await counts.flush();
    const statuses: number[] = [];
    for (let guess = 0; guess < 22; guess += 1) statuses.push((await call(`wrong ${guess}`, 'GET', '/client')).status);
    expect(statuses.filter((status) => status === 401)).toHaveLength(20);
    expect(statuses.at(-1)).toBe(429);
    expect((await client.token()).status).toBe(429);
    await counts.flush();
    // More than one event, if a minute ended meanwhile.
    const failed = (await audited('client.authentication-failed')).map(({ detail }) => Number(detail!.failed));
    expect(failed.reduce((sum, count) => sum + count, 0)).toBe(20);
  });

  test.each([
    ['PUT', '/client/notify-url', { notifyUrl: 'https://a.example/', name: 'x' }],
    ['PUT', '/client/notify-url', {}],
    ['PUT', '/client/notify-url?test=false', { notifyUrl: 'https://a.example/' }],
    ['POST', '/client/secret/rotate', { overlap: '0s' }],
    ['POST', '/client/secret/finish', { force: true }],
  ])('%s %s refuses what it does not know: %j', async (method, path, body) => {
    const { status, headers } = await call(client.secret, method, path, body, { 'idempotency-key': 'one' });
    expect(status).toBe(400);
    expect(headers.get('content-type')).toContain('application/problem+json');
  });
});

test('GET /client shows the account without any secret', async () => {
  const { status, body } = await call(client.secret, 'GET', '/client');
  expect(status).toBe(200);
  expect(body).toEqual({
    id: client.id,
    name: 'A test client',
    notifyUrl: 'https://earlier.example/notify',
    grants: ['client_credentials', 'refresh_token'],
    redirectUris: [],
    secrets: [{ createdAt: expect.any(String), expiresAt: null, signs: 'X-Signature', hasLeaked: false }],
    deliveriesPaused: null,
    createdAt: expect.any(String),
  });
  expect(JSON.stringify(body)).not.toContain(client.secret);
});

describe('PUT /client/notify-url', () => {
  const put = (url: string): Promise<Answer> => call(client.secret, 'PUT', '/client/notify-url', { notifyUrl: url });

  test('changes the URL after its sample was accepted, and the audit names the client', async () => {
    const { status, body } = await put(receiver.url);
    expect(status).toBe(200);
    expect(body).toMatchObject({ notifyUrl: receiver.url, test: { outcome: 'delivered', diagnosis: null } });
    const { rawBody, headers } = receiver.arrivals.at(-1)!;
    expect(verifyNotification({ rawBody, headers, secret: client.secret })).toMatchObject({ test: true });
    expect(await notifyUrl()).toBe(receiver.url);
    const [event] = await audited('client.notify-url-set');
    expect(event).toMatchObject({ actor: `client:${client.id}`, address: '127.0.0.1' });
  });

  test('changes nothing if the sample is refused, and says why', async () => {
    receiver.behaviour = (response) => void response.writeHead(401).end('wrong signature');
    const { status, headers, body } = await put(receiver.url);
    expect(status).toBe(422);
    expect(headers.get('content-type')).toContain('application/problem+json');
    expect(body.detail).toContain('the receiver answered 401');
    expect(body.test).toMatchObject({
      outcome: 'refused',
      diagnosis: { code: 'signature-refused' },
      responseSnippet: 'wrong signature',
    });
    expect(await notifyUrl()).toBe('https://earlier.example/notify');
  });

  test('refuses addresses that registration refuses, without sending anything', async () => {
    const before = receiver.arrivals.length;
    for (const url of ['http://169.254.169.254/latest', 'ftp://a.example/', receiver.url.replace('//', '//user:x@')])
      expect(await put(url)).toMatchObject({ status: 400, body: { errors: [{ pointer: '#/notifyUrl' }] } });
    expect(receiver.arrivals).toHaveLength(before);
    expect(await notifyUrl()).toBe('https://earlier.example/notify');
  });

  test('leaves pending notifications at the URL that they were made with, as the operator’s command does', async () => {
    const pending = await TestReceiver.start();
    pending.behaviour = answer(500);
    await usher.clients.setNotifyUrl(client.id, pending.url);
    const key = await client.completedOrder();
    await pending.waitFor(key);
    expect((await put(receiver.url)).status).toBe(200);
    pending.behaviour = answer(200);
    await usher.webhook(key, 'SUCCESS');
    expect(receiver.of(key)).toHaveLength(0);
    pending.close();
  });

  test('sends at most ten samples a minute, together with POST /webhooks/test', async () => {
    for (let sample = 0; sample < 5; sample += 1)
      await client.call('POST', '/webhooks/test', { notifyUrl: receiver.url });
    const statuses: number[] = [];
    for (let sample = 0; sample < 6; sample += 1) statuses.push((await put(receiver.url)).status);
    expect(statuses).toEqual([200, 200, 200, 200, 200, 429]);
  });
});

describe('POST /client/secret/rotate', () => {
  test('answers a new secret beside the old one, and both stay valid', async () => {
    const { status, body } = await rotate(client.secret, 'first');
    expect(status).toBe(200);
    const next = String(body.secret);
    expect(next).toMatch(/^[A-Za-z0-9]{43}$/);
    expect([await authenticates(client.secret), await authenticates(next)]).toEqual([true, true]);
    const { secrets } = (await call(next, 'GET', '/client')).body;
    expect(secrets).toEqual([
      { createdAt: expect.any(String), expiresAt: body.oldSecretValidUntil, signs: 'X-Signature', hasLeaked: false },
      { createdAt: expect.any(String), expiresAt: null, signs: 'X-Signature-Next', hasLeaked: false },
    ]);
    const [event] = await audited('secret.rotated');
    expect(event).toMatchObject({ actor: `client:${client.id}`, address: '127.0.0.1' });
    expect(JSON.stringify(event)).not.toContain(next);
  });

  test('gives a lost answer again to the same Idempotency-Key, with the old or the new secret', async () => {
    const { body } = await rotate(client.secret, 'lost');
    for (const secret of [client.secret, String(body.secret)])
      expect(await rotate(secret, 'lost')).toMatchObject({ status: 200, body });
    expect(await usher.dataSource.manager.countBy(ClientSecret, { clientId: client.id })).toBe(2);
  });

  test('gives requests at the same moment with one key one secret', async () => {
    const answers = await Promise.all(Array.from({ length: 6 }, () => rotate(client.secret, 'together')));
    expect(answers.map(({ status }) => status)).toEqual(Array(6).fill(200));
    expect(new Set(answers.map(({ body }) => body.secret)).size).toBe(1);
  });

  test('shows the new secret to nobody who has the old one and another key', async () => {
    const { body } = await rotate(client.secret, 'mine');
    const other = await rotate(client.secret, 'theirs');
    expect(other.status).toBe(409);
    expect(JSON.stringify(other.body)).not.toContain(String(body.secret));
    expect(await authenticates(String(body.secret))).toBe(true);
  });

  test.each([undefined, '', 'ü'])('refuses the Idempotency-Key %j', async (key) => {
    const headers = key === undefined ? {} : { 'idempotency-key': key };
    const { status, body } = await call(client.secret, 'POST', '/client/secret/rotate', undefined, headers);
    expect(status).toBe(400);
    expect(body.errors).toMatchObject([{ header: 'Idempotency-Key' }]);
  });

  test('is limited, so that a client cannot fill the audit', async () => {
    const answers = [];
    for (let change = 0; change < 11; change += 1) answers.push(await rotate(client.secret, 'same'));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(10);
    expect(Number(answers.at(-1)?.headers.get('retry-after'))).toBeGreaterThan(0);
  });
});

describe('POST /client/secret/finish', () => {
  test('ends the old secret at once, even if a process remembers it', async () => {
    const next = String((await rotate(client.secret, 'one')).body.secret);
    expect((await call(client.secret, 'GET', '/client')).status).toBe(200);
    expect(await finish(next)).toMatchObject({ status: 200, body: { secrets: [{ signs: 'X-Signature' }] } });
    expect((await call(client.secret, 'GET', '/client')).status).toBe(401);
    expect([await authenticates(client.secret), await authenticates(next)]).toEqual([false, true]);
  });

  test('needs the new secret, so that nobody who does not have it is locked out', async () => {
    const next = String((await rotate(client.secret, 'one')).body.secret);
    expect((await finish(client.secret)).status).toBe(409);
    expect([await authenticates(client.secret), await authenticates(next)]).toEqual([true, true]);
  });

  test('can be repeated, and changes nothing without a rotation', async () => {
    expect((await finish(client.secret)).status).toBe(200);
    const next = String((await rotate(client.secret, 'one')).body.secret);
    for (let time = 0; time < 2; time += 1) expect((await finish(next)).status).toBe(200);
    expect(await authenticates(next)).toBe(true);
    const events = await audited('secret.rotation-finished');
    expect(events).toMatchObject([{ actor: `client:${client.id}` }]);
  });

  test('leaves the Idempotency-Key of its rotation used', async () => {
    const next = String((await rotate(client.secret, 'one')).body.secret);
    await finish(next);
    expect((await rotate(next, 'one')).status).toBe(409);
    expect((await rotate(next, 'two')).status).toBe(200);
  });
});
