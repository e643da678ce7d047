import { createHmac } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { PortalLinks } from '../../../src/portal/portal.js';
import { isTooWide, violationsOf } from '../../support/axe.js';
import { launchBrowser, picture } from '../../support/browser.js';
import { answer, TestReceiver } from '../../support/receiver.js';
import { ONE_ATTEMPT, TestClient, TestUsher } from '../../support/usher.js';

let usher: TestUsher;
let receiver: TestReceiver;
let browser: Browser;
let client: TestClient;
beforeAll(async () => {
  usher = await TestUsher.start(ONE_ATTEMPT);
  receiver = await TestReceiver.start();
  browser = await launchBrowser();
});
afterAll(async () => {
  await browser.close();
  await usher.stop();
  receiver.close();
});
beforeEach(async () => {
  receiver.behaviour = answer(200);
  client = await usher.client(receiver.url);
});

/** The page of a new link. */
async function linkPage(
  options: Parameters<Browser['newContext']>[0],
): Promise<{ context: BrowserContext; page: Page }> {
  const { url } = await usher.running.app.get(PortalLinks, { strict: false }).create(client.id, { mayChange: true });
  const context = await browser.newContext(options);
  const page = await context.newPage();
  await page.goto(usher.running.url + url);
  return { context, page };
}

/** Counts what a person does with a finger. */
function finger(page: Page) {
  let clicks = 0;
  return {
    count: () => clicks,
    click: async (role: 'button' | 'link' | 'checkbox', name: string) => {
      clicks += 1;
      await page.getByRole(role, { name }).first().click();
    },
  };
}

test('from “nothing has arrived” to “everything arrived” a partner needs at most 8 clicks, also without JavaScript', async () => {
  receiver.behaviour = answer(404);
  const keys = [await client.completedOrder(), await client.completedOrder(), await client.completedOrder()];
  for (const key of keys) await usher.webhook(key, 'FAILED');
  const moved = await TestReceiver.start();
  const { context, page } = await linkPage({ javaScriptEnabled: false });
  const { click, count } = finger(page);
  await click('button', 'Open the portal');
  await page.getByText('Failures in a row').waitFor();
  await page.getByText('The Notify URL does not exist', { exact: false }).or(page.getByText('404')).first().waitFor();
  await click('link', 'Change the Notify URL');
  await page.getByLabel('Notify URL', { exact: true }).fill(moved.url);
  await click('button', 'Set the Notify URL');
  await page.getByText('The Notify URL is set.').waitFor();
  await click('link', 'Send again what has failed');
  await click('checkbox', 'Yes, send all of them again');
  await click('button', 'Send all again');
  await page.getByRole('heading', { level: 1, name: 'Send again' }).waitFor();
  for (const key of keys) await usher.webhook(key, 'SUCCESS');
  await page.reload();
  expect(
    await page
      .locator('dt', { hasText: /^Delivered$/ })
      .locator('+ dd')
      .textContent(),
  ).toContain('3');
  expect(count()).toBeLessThanOrEqual(8);
  await context.close();
  moved.close();
});

test('a leaked secret is replaced in at most 6 clicks, and no notification is lost', async () => {
  const { context, page } = await linkPage({});
  const { click, count } = finger(page);
  await click('button', 'Open the portal');
  await click('link', 'Settings');
  await click('checkbox', 'We get no token until the new secret is in use');
  await click('button', 'Refuse the leaked secret, issue a new one');
  const secret = (await page.locator('dt', { hasText: 'Client secret' }).locator('+ dd code').textContent())!;
  const key = await new TestClient(usher, client.id, secret).completedOrder();
  await usher.webhook(key, 'SUCCESS');
  const { headers, rawBody } = receiver.arrivals.at(-1)!;
  const text = `${String(headers['x-timestamp'])}${String(headers['x-nonce-str'])}${rawBody.toString('base64')}`;
  expect(headers['x-signature-next']).toBe(createHmac('sha256', secret).update(text).digest('hex'));
  await click('link', 'To the settings');
  expect(count()).toBeLessThanOrEqual(6);
  // The browser has not stored the page, and the form is good once.
  await page.goBack().catch(() => null);
  expect(await page.getByText(secret).count()).toBe(0);
  await context.close();
});

test('no page violates axe or is wider than a phone', async () => {
  const { id } = await usher.webhook(await client.completedOrder(), 'SUCCESS');
  const { context, page } = await linkPage({ bypassCSP: true, viewport: { width: 390, height: 844 } });
  const check = async (name: string): Promise<void> => {
    expect({ name, violations: await violationsOf(page) }).toEqual({ name, violations: [] });
    expect({ name, isTooWide: await isTooWide(page) }).toEqual({ name, isTooWide: false });
    await picture(page, `portal/${name}-390`);
  };
  await check('link');
  await page.getByRole('button', { name: 'Open the portal' }).click();
  for (const name of ['overview', 'notifications', 'missed', 'orders', 'settings', 'record', `webhooks/${id}`]) {
    await page.goto(`${usher.running.url}/portal/${name}`);
    await check(name.replace(/\/.*/, ''));
  }
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.goto(`${usher.running.url}/portal/overview`);
  await picture(page, 'portal/overview-1280');
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByLabel('Client id').waitFor();
  await check('entry');
  await context.close();
});
