import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { seal } from '../../../src/http/pages/form-tokens.js';
import { PortalSession } from '../../../src/clients/portal.entity.js';
import { SecretRotation } from '../../../src/clients/secrets/secret-rotation.js';
import { PortalLinks } from '../../../src/portal/portal.js';
import { WebhookResends } from '../../../src/webhooks/undelivered/webhook-resends.js';
import { ANY_WEBHOOK } from '../../../src/webhooks/search/webhook-criteria.js';
import { eventually } from '../../support/eventually.js';
import { OperatorBrowser } from '../../support/operator-browser.js';
import { answer, TestReceiver } from '../../support/receiver.js';
import { ONE_ATTEMPT, type TestClient, TestUsher } from '../../support/usher.js';
import { portalOf } from './portal-browser.js';

let usher: TestUsher;
let receiver: TestReceiver;
let client: TestClient;
let other: TestClient;
beforeAll(async () => {
  usher = await TestUsher.start(ONE_ATTEMPT);
});
afterAll(() => usher.stop());
beforeEach(async () => {
  receiver = await TestReceiver.start();
  client = await usher.client(receiver.url);
  other = await usher.client(receiver.url);
});
afterEach(() => receiver.close());

const PAGES = ['overview', 'notifications', 'missed', 'orders', 'settings', 'record'].map((page) => `/portal/${page}`);

async function failed(of: TestClient): Promise<{ id: string; key: string }> {
  receiver.behaviour = answer(500);
  const key = await of.completedOrder();
  const { id } = await usher.webhook(key, 'FAILED');
  receiver.behaviour = answer(200);
  return { id, key };
}

describe('in its portal a client', () => {
  test('sees why a notification failed, sends it again and sees that it arrived', async () => {
    const { id, key } = await failed(client);
    const browser = await portalOf(usher, client.id);
    expect((await browser.get('/portal/overview')).text).toContain('The receiver failed');
    const page = await browser.get(`/portal/webhooks/${id}`);
    expect(page.text).toContain('the receiver answered 500');
    const sent = await browser.post(`/portal/webhooks/${id}/resend`, {}, { page: `/portal/webhooks/${id}` });
    expect(sent.location).toMatch(/^\/portal\/webhooks\//);
    await usher.webhook(key, 'SUCCESS');
    expect((await browser.get(sent.location!)).text).toContain('SUCCESS');
  });

  test('sends all failed ones again, and sees the outcome', async () => {
    await failed(client);
    await failed(client);
    const foreign = await failed(other);
    const browser = await portalOf(usher, client.id);
    const list = '/portal/notifications?status=UNRESOLVED';
    const answered = await browser.post(
      '/portal/notifications/resend-all',
      { status: 'UNRESOLVED', client: other.id, confirmed: 'yes' },
      { page: list },
    );
    expect(answered.location).toMatch(/^\/portal\/resends\//);
    await eventually('both arrived', async () => {
      const { text } = await browser.get(answered.location!);
      return /<dt>Delivered<\/dt>\s*<dd class="good">\s*<a [^>]*>2</.test(text);
    });
    expect((await usher.webhooks.find(foreign.key)).map(({ status }) => status)).toEqual(['FAILED']);
  });

  test('changes its Notify URL only to one that accepts a sample', async () => {
    const browser = await portalOf(usher, client.id);
    const moved = await TestReceiver.start();
    moved.behaviour = answer(500);
    const set = (notifyUrl: string) =>
      browser.post('/portal/settings/notify-url', { notifyUrl, isTested: 'no' }, { page: '/portal/settings' });
    expect((await set(moved.url)).status).toBe(422);
    expect((await usher.clients.get(client.id)).notifyUrl).toBe(receiver.url);
    moved.behaviour = answer(200);
    expect((await set(moved.url)).location).toBe('/portal/settings?done=notify-url');
    expect((await usher.clients.get(client.id)).notifyUrl).toBe(moved.url);
    moved.close();
  });

  test('replaces a leaked secret, sees the new one once, and stays signed in alone', async () => {
    const [browser, stranger] = [await portalOf(usher, client.id), await portalOf(usher, client.id)];
    const fields = { overlap: '60m', confirmed: 'yes', revokeTokens: 'yes' };
    const { text } = await browser.post('/portal/settings/leaked', fields, { page: '/portal/settings' });
    const secret = /Client secret<\/dt>\s*<dd><code>([^<]+)</.exec(text)?.[1];
    expect((await usher.request('GET', '/client', { authorization: client.basic })).status).toBe(401);
    const authorization = `Basic ${btoa(`${client.id}:${secret}`)}`;
    expect((await usher.request('GET', '/client', { authorization })).status).toBe(200);
    expect(text).not.toContain('/ops');
    expect((await browser.get('/portal/settings')).text).not.toContain(secret!);
    expect((await stranger.get('/portal/settings')).location).toBe('/portal');
  });

  test('changes its contact and its secret at most ten times a minute, and those of the API count apart', async () => {
    const { id, basic } = await usher.client();
    const browser = await portalOf(usher, id);
    const send = (form: string, fields: Record<string, string>) =>
      browser.post(`/portal/settings/${form}`, fields, { page: '/portal/settings' });
    for (let count = 0; count < 10; count += 1)
      expect((await send('contact', { contact: `c${count}@partner.example` })).status).toBe(303);
    for (const { status, headers } of [
      await send('contact', { contact: 'c10@partner.example' }),
      await send('rotate', { overlap: '24h', confirmed: 'yes' }),
    ])
      expect([status, headers.get('retry-after')]).toEqual([429, expect.stringMatching(/^\d+$/)]);
    expect((await usher.clients.get(id)).contact).toBe('c9@partner.example');
    expect((await usher.request('POST', '/client/secret/finish', { authorization: basic })).status).toBe(200);
  });

  test('certifies its receiver in the sandbox, and sends a sample', async () => {
    const browser = await portalOf(usher, client.id);
    const page = { page: '/portal/settings' };
    expect((await browser.post('/portal/settings/certify', {}, page)).text).toContain('The receiver did not pass');
    expect((await browser.post('/portal/settings/test', {}, page)).text).toContain('The test was accepted');
  });

  test('sees its orders with their totals, and reads what it missed as a file', async () => {
    const { id, key } = await failed(client);
    const foreign = await failed(other);
    const browser = await portalOf(usher, client.id, {});
    const { text } = await browser.get('/portal/orders');
    expect(text).toContain(key);
    expect(text).toMatch(/data-name="To pay"[^>]*>\s*<div>\s*43\.00\s*</);
    const file = await browser.get('/portal/missed.csv');
    expect(file.headers.get('content-type')).toContain('text/csv');
    expect(file.text).toContain(id);
    expect(file.text).not.toContain('X-Signature');
    expect(text + file.text).not.toContain(foreign.key);
  });

  test('reads what was done in it, which the audit has too, with the address', async () => {
    const browser = await portalOf(usher, client.id);
    await browser.post('/portal/settings/contact', { contact: 'new@partner.example' }, { page: '/portal/settings' });
    await browser.post('/portal/settings/test', {}, { page: '/portal/settings' });
    await browser.post('/portal/settings/certify', {}, { page: '/portal/settings' });
    const { text } = await browser.get('/portal/record');
    const acts = ['signed in at the portal', 'set a contact', 'tested a client', 'ran a certification'];
    for (const shown of [...acts, '127.0.0.1']) expect(text).toContain(shown);
  });
});

describe('nobody', () => {
  test('sees or changes by an id what belongs to another client', async () => {
    const { id } = await failed(other);
    const own = await failed(client);
    const resends = usher.running.app.get(WebhookResends, { strict: false });
    const resend = await resends.startFor({ ...ANY_WEBHOOK, clientId: client.id });
    const browser = await portalOf(usher, client.id);
    for (const path of [`/portal/webhooks/${id}`, `/portal/resends/${resend}`])
      expect({ path, status: (await browser.get(path)).status }).toEqual({ path, status: 404 });
    // The form of an own page, sent to the other one's address.
    const proof = await browser.get(`/portal/webhooks/${own.id}`);
    const form = /name="form" value="([^"]+)"/.exec(proof.text)![1]!;
    expect((await browser.post(`/portal/webhooks/${id}/resend`, { form }, { page: null })).status).toBe(403);
    await failed(client);
    const list = '/portal/notifications?status=UNRESOLVED';
    const chosen = await browser.post('/portal/notifications/resend', { [`select.${id}`]: 'yes' }, { page: list });
    expect(chosen.status).toBe(404);
    for (const query of [`client=${other.id}`, `order=${(await usher.webhooks.show(id)).webhook.referenceId}`]) {
      const { text } = await browser.get(`/portal/notifications?${query}`);
      expect(text).not.toContain(id);
    }
    expect((await usher.webhooks.show(id)).webhook.status).toBe('FAILED');
  });

  test('changes anything by a link that only allows reading', async () => {
    const { id } = await failed(client);
    const browser = await portalOf(usher, client.id, {});
    for (const path of [...PAGES, `/portal/webhooks/${id}`]) {
      const { status, text } = await browser.get(path);
      expect(text).not.toMatch(/\/ops|operator:|title="the receiver answered/);
      expect({ path, status }).toEqual({ path, status: 200 });
      expect(text.match(/<form\s+method="post"/g)).toHaveLength(1);
      expect(text).not.toMatch(/X-Signature: [0-9a-f]{64}/);
    }
    // Whoever has the session can seal forms with it.
    const session = browser.cookies.get('usher-portal-session')!;
    for (const path of [`/portal/webhooks/${id}/resend`, '/portal/settings/rotate', '/portal/settings/contact']) {
      const fields = { form: seal(session, path), confirmed: 'yes', contact: 'a@partner.example', overlap: '24h' };
      expect({ path, status: (await browser.post(path, fields, { page: null })).status }).toEqual({
        path,
        status: 403,
      });
    }
    expect((await usher.clients.get(client.id)).contact).toBeNull();
  });

  test('goes on after the client was disabled, its secret has leaked or the link was withdrawn', async () => {
    const links = usher.running.app.get(PortalLinks, { strict: false });
    const ends = [
      () => usher.clients.setDisabled(client.id, true).then(() => usher.clients.setDisabled(client.id, false)),
      () => usher.running.app.get(SecretRotation, { strict: false }).rotate(client.id, 0, { hasLeaked: true }),
      async () => links.withdraw(client.id, (await links.list(client.id))[0]!.id),
    ];
    for (const end of ends) {
      const browser = await portalOf(usher, client.id);
      expect((await browser.get('/portal/overview')).status).toBe(200);
      await end();
      expect(await browser.get('/portal/overview')).toMatchObject({ status: 303, location: '/portal' });
      expect(await browser.post('/portal/settings/contact', { contact: '' }, { page: null })).toMatchObject({
        location: '/portal',
      });
    }
  });

  test('stays signed in after the idle time or the end of the session, and no cookie opens another site', async () => {
    const browser = await portalOf(usher, client.id);
    const [row] = await usher.dataSource.manager.findBy(PortalSession, { clientId: client.id });
    expect(row!.expiresAt - row!.createdAt).toBe(900_000);
    const cookies = [...browser.cookies];
    // The values of the portal's cookies under the names of the console and the members.
    const thief = new OperatorBrowser(usher);
    for (const [, value] of cookies)
      for (const name of ['usher-ops-session', 'usher-session']) thief.cookies.set(name, value);
    expect((await thief.get('/ops')).location).toMatch(/^\/ops\/sign-in/);
    expect((await thief.get('/auth/connections')).status).not.toBe(200);
    expect((await browser.get('/ops')).location).toMatch(/^\/ops\/sign-in/);
    const operator = await OperatorBrowser.of(usher, 'alice');
    expect((await operator.get('/portal/overview')).location).toBe('/portal');
    for (const value of [...operator.cookies.values()]) operator.cookies.set('usher-portal-session', value);
    expect((await operator.get('/portal/overview')).location).toBe('/portal');
    await usher.dataSource.manager.update(PortalSession, { clientId: client.id }, { expiresAt: Date.now() - 1 });
    expect((await browser.get('/portal/overview')).location).toBe('/portal');
  });

  test('sends a form from another site, or one that was made elsewhere', async () => {
    const browser = await portalOf(usher, client.id);
    const page = { page: '/portal/settings' };
    const post = (headers: Record<string, string>, more: { page: string | null } = page) =>
      browser.post('/portal/settings/contact', { contact: 'evil@evil.example' }, { ...more, headers });
    expect((await post({ origin: 'https://evil.example' })).status).toBe(403);
    expect((await post({ 'sec-fetch-site': 'same-site' })).status).toBe(403);
    expect((await post({}, { page: null })).status).toBe(403);
    expect((await usher.clients.get(client.id)).contact).toBeNull();
  });

  test('frames a page, or finds it in a cache', async () => {
    const browser = await portalOf(usher, client.id);
    for (const path of [...PAGES, '/portal', `/portal/open/x`]) {
      const { headers } = await browser.get(path);
      expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
      expect(headers.get('cache-control')).toBe('no-store');
      expect(headers.get('referrer-policy')).toBe('same-origin');
    }
  });
});
