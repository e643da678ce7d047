import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { AuditLog } from '../../../src/audit/audit.module.js';
import { SecretRotation } from '../../../src/clients/secrets/secret-rotation.js';
import { type NewPortalLink, PortalLinks } from '../../../src/portal/portal.js';
import { Client } from '../../../src/clients/client.entity.js';
import { PortalLink } from '../../../src/clients/portal.entity.js';
import { OperatorBrowser } from '../../support/operator-browser.js';
import { TestReceiver } from '../../support/receiver.js';
import { type TestClient, TestUsher } from '../../support/usher.js';

let usher: TestUsher;
let client: TestClient;
beforeAll(async () => {
  usher = await TestUsher.start();
  client = await usher.client('http://127.0.0.1:4000/notify');
});
afterAll(() => usher.stop());

const links = (): PortalLinks => usher.running.app.get(PortalLinks, { strict: false });
const linkOf = async (id: string, given: NewPortalLink = {}): Promise<string> => (await links().create(id, given)).url;

const newBrowser = (): OperatorBrowser => new OperatorBrowser(usher);
async function opened(url: string): Promise<OperatorBrowser> {
  const browser = newBrowser();
  expect(await browser.post(url, {})).toMatchObject({ status: 303, location: '/portal/overview' });
  return browser;
}

const withdraw = async (): Promise<void> => {
  const [newest] = await links().list(client.id);
  await links().withdraw(client.id, newest!.id);
};
const expire = () => usher.dataSource.manager.update(PortalLink, { clientId: client.id }, { expiresAt: 1 });
const rotation = (): SecretRotation => usher.running.app.get(SecretRotation, { strict: false });

describe('a link to the portal', () => {
  test('signs in who presses its button, and shows the notifications of this client alone', async () => {
    const key = await client.completedOrder();
    const other = await usher.client('http://127.0.0.1:4000/other');
    const otherKey = await other.completedOrder();
    const browser = await opened(await linkOf(client.id));
    const { status, text } = await browser.get('/portal/notifications');
    expect(status).toBe(200);
    expect(text).toContain(key);
    expect(text).not.toContain(otherKey);
    expect(text).not.toContain('/ops');
  });

  test('is still valid after a scanner has fetched it with GET and HEAD, also with the cookies of a page', async () => {
    const url = await linkOf(client.id);
    const scanner = newBrowser();
    for (const method of ['GET', 'HEAD', 'GET']) {
      const { status } = await scanner.send(method, url, { accept: 'text/html' });
      expect(status).toBe(200);
    }
    expect((await links().list(client.id))[0]!.openedAt).toBeNull();
    await opened(url);
  });

  test.each([60_000.5, NaN, 59_999, 31 * 86_400_000])('is not made with a duration of %d ms: 422', async (validMs) => {
    await expect(links().create(client.id, { validMs })).rejects.toMatchObject({ status: 422 });
  });

  test('opens once: of many browsers at the same moment one is signed in', async () => {
    const url = await linkOf(client.id);
    const answers = await Promise.all([1, 2, 3, 4, 5, 6].map(() => newBrowser().post(url, {})));
    expect(answers.map(({ status }) => status).sort()).toEqual([303, 410, 410, 410, 410, 410]);
    expect((await newBrowser().post(url, {})).status).toBe(410);
  });

  test.each([
    ['was withdrawn', withdraw],
    ['has expired', expire],
    [
      'is of a client that was disabled and enabled again',
      () => usher.clients.setDisabled(client.id, true).then(() => usher.clients.setDisabled(client.id, false)),
    ],
    ['is from before a leak', () => rotation().rotate(client.id, 0, { hasLeaked: true })],
  ])('that %s opens nothing', async (_, end) => {
    const url = await linkOf(client.id);
    await end();
    const browser = newBrowser();
    expect((await browser.post(url, {})).status).toBe(410);
    expect((await browser.get('/portal/notifications')).location).toBe('/portal');
  });

  test('that is guessed opens nothing', async () => {
    for (const token of ['x', `usher_sandbox_portal_${'a'.repeat(43)}`, '%00', '../../ops']) {
      const { status } = await newBrowser().post(`/portal/open/${encodeURIComponent(token)}`, {});
      expect({ token, status }).toEqual({ token, status: 410 });
    }
  });

  test('is not a credential of the API', async () => {
    const fresh = await usher.client();
    const token = (await linkOf(fresh.id)).split('/').at(-1)!;
    for (const [method, path] of [
      ['GET', '/webhooks'],
      ['GET', '/movie-orders'],
      ['POST', '/movie-orders'],
      ['GET', '/client'],
    ]) {
      const { status } = await usher.request(
        method!,
        path!,
        { authorization: `Bearer ${token}` },
        method === 'POST' ? {} : undefined,
      );
      expect({ path, status }).toEqual({ path, status: 401 });
    }
    expect((await usher.request('POST', '/auth/introspect', { authorization: fresh.basic }, { token })).body).toEqual({
      active: false,
    });
    expect((await fresh.refresh(token)).status).toBe(400);
  });

  test('shows the new secret once, and the operator sees when and from where', async () => {
    const { client: made, secret } = await usher.clients.create('A new client', null);
    const url = await linkOf(made.id, { showsSecret: true });
    const browser = newBrowser();
    const answer = await browser.post(url, {});
    expect(answer.text).toContain(secret);
    expect(answer.headers.get('cache-control')).toBe('no-store');
    expect(await links().list(made.id)).toEqual([
      expect.objectContaining({ openedFrom: '127.0.0.1', openedAt: expect.any(Number) as unknown }),
    ]);
    // Back and reload send the form again.
    const again = await browser.post(url, {});
    expect([again.status, again.text.includes(secret)]).toEqual([410, false]);
    await expect(links().create(made.id, { showsSecret: true })).rejects.toThrow('once');
    expect((await browser.get('/portal/overview')).text).not.toContain(secret);
    const [event] = await usher.running.app
      .get(AuditLog)
      .list({ subject: `client:${made.id}`, action: 'portal.signed-in' });
    expect(event).toMatchObject({ actor: `client:${made.id}`, address: '127.0.0.1', detail: { showsSecret: true } });
  });

  test('shows a secret once, however many links have it and whoever opens them at the same moment', async () => {
    const { client: made, secret } = await usher.clients.create('Two links', null);
    const urls = [1, 2, 3].map(() => linkOf(made.id, { showsSecret: true }));
    const answers = await Promise.all((await Promise.all(urls)).map((url) => newBrowser().post(url, {})));
    expect(answers.map(({ text }) => text.includes(secret)).sort()).toEqual([false, false, true]);
    for (const { status, text } of answers)
      if (!text.includes(secret)) expect([status, text]).toEqual([200, expect.stringContaining('ask your operator')]);
  });

  test('is not made for a client that is disabled, and one that is made while it is disabled opens nothing', async () => {
    const { id } = await usher.client();
    const [made] = await Promise.allSettled([links().create(id), usher.clients.setDisabled(id, true)]);
    if (made.status === 'fulfilled') expect((await newBrowser().post(made.value.url, {})).status).toBe(403);
    await expect(links().create(id)).rejects.toThrow('the client is disabled');
    await usher.clients.setDisabled(id, false);
    if (made.status === 'fulfilled') expect((await newBrowser().post(made.value.url, {})).status).toBe(410);
  });

  test('is not made for a client that does not exist', async () => {
    for (const id of ['nobody', `${client.id} `, '\0'])
      await expect(links().create(id)).rejects.toMatchObject({ status: 404 });
  });

  test('of a disabled client is not used up, and says to ask the operator', async () => {
    const { id } = await usher.client();
    const url = await linkOf(id);
    const set = (disabledAt: number | null) => usher.dataSource.manager.update(Client, { id }, { disabledAt });
    await set(1);
    expect(await newBrowser().post(url, {})).toMatchObject({
      status: 403,
      text: expect.stringContaining('Ask your operator') as unknown,
    });
    expect((await links().list(id))[0]!.openedAt).toBeNull();
    await set(null);
    await opened(url);
  });

  test('does not show a secret that was replaced after it was made', async () => {
    const { client: made } = await usher.clients.create('Replaced', null);
    const url = await linkOf(made.id, { showsSecret: true });
    const { secret } = await rotation().rotate(made.id, 3_600_000);
    const { text } = await newBrowser().post(url, {});
    expect(text).toContain('was replaced');
    expect(text).not.toContain(secret);
  });

  test('is not opened by a form that another site sends, or that another browser got', async () => {
    const url = await linkOf(client.id);
    const foreign = { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' };
    expect((await newBrowser().post(url, {}, { headers: foreign })).status).toBe(403);
    expect((await newBrowser().post(url, {}, { page: null })).status).toBe(403);
    await opened(url);
  });

  test('that is withdrawn while a receiver answers changes no Notify URL', async () => {
    const browser = await opened(await linkOf(client.id, { mayChange: true }));
    const receiver = await TestReceiver.start();
    receiver.behaviour = (response) => void withdraw().then(() => response.end());
    const form = { notifyUrl: receiver.url };
    expect((await browser.post('/portal/settings/notify-url', form, { page: '/portal/settings' })).status).toBe(403);
    expect((await usher.clients.get(client.id)).notifyUrl).toBe('http://127.0.0.1:4000/notify');
    receiver.close();
  });
});
