import type { ServerResponse } from 'node:http';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { ClientSecret } from '../../../src/clients/client.entity.js';
import { seal } from '../../../src/http/pages/form-tokens.js';
import { eventually } from '../../support/eventually.js';
import type { OperatorBrowser } from '../../support/operator-browser.js';
import { answer, TestReceiver } from '../../support/receiver.js';
import { ONE_ATTEMPT, type TestClient, TestUsher } from '../../support/usher.js';
import { insertFailed } from '../../webhooks/undelivered/support.js';
import { portalOf } from './portal-browser.js';

let usher: TestUsher;
let receiver: TestReceiver;
let client: TestClient;
beforeAll(async () => {
  usher = await TestUsher.start({ ...ONE_ATTEMPT, WEBHOOK_PENDING_LIMIT: '2' });
});
afterAll(() => usher.stop());
beforeEach(async () => {
  receiver = await TestReceiver.start();
  receiver.behaviour = answer(500);
  client = await usher.client(receiver.url);
});
afterEach(() => receiver.close());

async function failed(): Promise<string> {
  return (await usher.webhook(await client.completedOrder(), 'FAILED')).id;
}

/** Sends a form, whether or not a page shows it at present. */
function post(browser: OperatorBrowser, path: string, fields: Record<string, string>) {
  const form = seal(browser.cookies.get('usher-portal-session')!, path);
  return browser.post(path, { ...fields, form }, { page: null });
}

test('a client asks for at most ten resends a minute, as by the API', async () => {
  const id = await failed();
  const browser = await portalOf(usher, client.id);
  const all = () => post(browser, '/portal/notifications/resend-all', { status: 'FAILED', confirmed: 'yes' });
  for (let count = 0; count < 10; count += 1) expect((await all()).location).toMatch(/^\/portal\/resends\//);
  for (const refused of [await all(), await post(browser, '/portal/notifications/resend', { [`select.${id}`]: 'yes' })])
    expect([refused.status, refused.text.includes('Only 10 resends a minute are allowed')]).toEqual([429, true]);
});

test('a client with as many pending notifications as its limit sends none again', async () => {
  const id = await failed();
  const open: ServerResponse[] = [];
  receiver.behaviour = (response) => void open.push(response);
  const pending = [await client.completedOrder(), await client.completedOrder()];
  // An order that is only created makes no notification.
  const isLimited = () =>
    client.order().then(
      () => false,
      () => true,
    );
  await eventually('the limit is reached', isLimited);
  const browser = await portalOf(usher, client.id);
  for (const [path, fields] of [
    ['/portal/notifications/resend', { [`select.${id}`]: 'yes' }],
    ['/portal/notifications/resend-all', { status: 'FAILED', confirmed: 'yes' }],
  ] as const)
    expect({ path, status: (await post(browser, path, fields)).status }).toEqual({ path, status: 429 });
  expect((await post(browser, `/portal/webhooks/${id}/resend`, {})).status).toBe(429);
  await receiver.waitFor(pending[1]!);
  for (const response of open) response.end();
  for (const key of pending) await usher.webhook(key, 'SUCCESS');
});

test('a list of more than 1,000 rows is not read as a whole to be sorted', async () => {
  await insertFailed(
    client,
    Array.from({ length: 1_001 }, (_, n) => `order-${n}`),
  );
  const browser = await portalOf(usher, client.id, {});
  for (const path of ['/portal/missed?sort=Body', '/portal/notifications?sort=Order']) {
    const { text } = await browser.get(path);
    expect(text).toContain('Only a list of at most 1,000 rows is sorted by this column.');
    expect(text).not.toContain('aria-sort');
  }
});

test('a client without a valid secret still reads what it missed, on the page and as a file', async () => {
  const id = await failed();
  const browser = await portalOf(usher, client.id, {});
  await usher.dataSource.manager.delete(ClientSecret, { clientId: client.id });
  for (const path of ['/portal/missed', '/portal/missed.csv']) {
    const { status, text } = await browser.get(path);
    expect([status, text.includes(id)]).toEqual([200, true]);
  }
});
