import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type Browser, type BrowserContext, type Page } from 'playwright-core';
import { launchBrowser, openConsole, picture } from '../../support/browser.js';
import { isTooWide, violationsOf } from '../../support/axe.js';
import { eventually } from '../../support/eventually.js';
import { answer, TestReceiver } from '../../support/receiver.js';
import { TestClient, TestUsher } from '../../support/usher.js';

const run = promisify(execFile);
const WIDTHS = [390, 1280];
const SCHEMES = ['light', 'dark'] as const;

let usher: TestUsher;
let receiver: TestReceiver;
let repaired: TestReceiver;
let browser: Browser;
beforeAll(async () => {
  usher = await TestUsher.start({ WEBHOOK_MAX_ATTEMPTS: '2' });
  [receiver, repaired] = [await TestReceiver.start(), await TestReceiver.start()];
  browser = await launchBrowser();
});
afterAll(async () => {
  await browser.close();
  await usher.stop();
  for (const one of [receiver, repaired]) one.close();
});

async function signIn(context: BrowserContext): Promise<Page> {
  const page = await context.newPage();
  await openConsole(page, `${usher.running.url}/ops`);
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
  return page;
}

/** Pictures of the page as it is, on a phone and a desktop, light and dark. */
async function pictures(page: Page, name: string): Promise<void> {
  for (const width of WIDTHS)
    for (const colorScheme of SCHEMES) {
      await page.setViewportSize({ width, height: width < 600 ? 844 : 800 });
      await page.emulateMedia({ colorScheme });
      expect({ name, width, isTooWide: await isTooWide(page) }).toEqual({ name, width, isTooWide: false });
      await picture(page, `console/${name}-${width}-${colorScheme}`);
    }
}

const open = (page: Page, name: string): Promise<void> =>
  page.getByRole('navigation').getByRole('link', { name, exact: true }).click();

const textOf = async (page: Page, selector: string): Promise<string> =>
  (await page.locator(selector).first().textContent()) ?? '';

let clientPath = '';
let secret = '';

test('an operator issues a client, sees why its third order failed, repairs it and reads the audit, without JavaScript', async () => {
  const context = await browser.newContext({ javaScriptEnabled: false, viewport: { width: 1280, height: 800 } });
  const page = await signIn(context);

  // Issue a client, and hand the quick start over.
  await open(page, 'Clients');
  await page.getByRole('link', { name: 'New client' }).click();
  await page.locator('main input[name=name]').fill('Popcorn Partners');
  await page.locator('main input[name=notifyUrl]').fill('ftp://popcorn.example');
  await page.getByRole('button', { name: 'Create the client' }).click();
  await page.getByText('must', { exact: false }).first().waitFor();
  expect(await page.locator('main input[name=name]').inputValue()).toBe('Popcorn Partners');
  await page.locator('main input[name=notifyUrl]').fill(receiver.url);
  await page.getByRole('button', { name: 'Create the client' }).click();
  await page.getByText('It is not shown again').waitFor();
  await pictures(page, 'new-client');
  const quickStart = await textOf(page, 'pre');
  secret = /CLIENT_SECRET='([^']+)'/.exec(quickStart)?.[1] ?? '';
  await page.getByRole('link', { name: 'Popcorn Partners' }).first().click();
  clientPath = new URL(page.url()).pathname;

  // The integrator follows it, and the first order arrives.
  const commands = `${quickStart}\necho "$TOKEN"`;
  expect((await run('bash', ['-c', commands], { env: { PATH: process.env.PATH ?? '' } })).stdout).toMatch(/\w{20}/);
  const clientId = decodeURIComponent(clientPath.split('/').at(-1) ?? '');
  const integrator = new TestClient(usher, clientId, secret);
  const first = await integrator.completedOrder();
  await usher.webhook(first, 'SUCCESS');
  expect(receiver.of(first)).toHaveLength(1);
  await open(page, 'Notifications');
  await page.getByText('SUCCESS').first().waitFor();
  expect(await page.getByRole('link', { name: 'Popcorn Partners' }).count()).toBeGreaterThan(0);

  // The second order arrives too; the third one fails.
  const client = await usher.clients.get(clientId);
  await usher.webhook(await integrator.completedOrder(), 'SUCCESS');
  receiver.behaviour = (response) => void response.writeHead(401).end('{"error":"<b>who</b> are you"}');
  const third = await integrator.completedOrder();
  const failed = await usher.webhook(third, 'FAILED');

  // Why: the overview leads to the receiver, the list of failed ones to the notification.
  await page.goto(`${usher.running.url}/ops`);
  const { host } = new URL(receiver.url);
  // The page remembers its figures for some seconds.
  await eventually('the overview names the failing receiver', async () => {
    await page.reload();
    return (await page.getByText(host).count()) > 0;
  });
  await pictures(page, 'overview');
  await page.goto(`${usher.running.url}/ops/notifications?status=FAILED`);
  await pictures(page, 'notifications');
  await page.locator(`a[href="/ops/webhooks/${failed.id}"]`).first().click();
  await page.getByText('Usually it computed another signature').first().waitFor();
  await page.getByText('<b>who</b> are you').first().waitFor();
  await pictures(page, 'notification');

  // Repair the Notify URL: one that does not accept the sample is refused.
  await page.goto(`${usher.running.url}${clientPath}#notify-url`);
  await page.getByRole('button', { name: 'Set the Notify URL' }).click();
  await page.getByText('Nothing was changed').waitFor();
  await page.locator('main input[name=notifyUrl]').fill(repaired.url);
  await page.getByRole('button', { name: 'Set the Notify URL' }).click();
  await page.waitForURL(/done=/);
  expect((await usher.clients.get(client.id)).notifyUrl).toBe(repaired.url);

  // Send it again.
  await page.goto(`${usher.running.url}/ops/webhooks/${failed.id}`);
  await page.getByRole('button', { name: 'Send again' }).click();
  await page.waitForURL(({ href }) => !href.includes(failed.id));
  await usher.webhook(third, 'SUCCESS');
  expect(repaired.of(third)).toHaveLength(1);
  await page.reload();
  await page.getByText('SUCCESS').first().waitFor();

  // A new secret: both are valid until the old one is ended.
  await page.goto(`${usher.running.url}${clientPath}`);
  await pictures(page, 'client');
  await page.getByLabel('The integrator will get the new secret from me').check();
  await page.getByRole('button', { name: 'Issue a new secret' }).click();
  await page.getByText('It is not shown again').waitFor();
  await page.goto(`${usher.running.url}${clientPath}`);
  await page.getByLabel('The integrator uses the new secret').check();
  await page.getByRole('button', { name: 'End the old secret now' }).click();
  await page.waitForURL(/done=/);
  const old = await usher.request(
    'POST',
    '/auth/token',
    { authorization: `Basic ${Buffer.from(`${client.id}:${secret}`).toString('base64')}` },
    { grant_type: 'client_credentials' },
  );
  expect(old.status).toBe(401);

  // Who did what.
  await open(page, 'Audit');
  const audit = await textOf(page, 'main');
  for (const what of [/created/, /Notify URL/, /sent again|resent/i, /secret/, /operator:ops/])
    expect(audit).toMatch(what);
  await pictures(page, 'audit');
  await open(page, 'Receivers');
  await pictures(page, 'receivers');
  await open(page, 'Health');
  await pictures(page, 'health');
  await context.close();
});

describe.each(SCHEMES)('in %s colours', (colorScheme) => {
  const PAGES = [
    '/ops',
    '/ops/notifications',
    '/ops/notifications?status=FAILED',
    '/ops/notifications?order=none',
    '/ops/receivers',
    () => `/ops/receivers/${encodeURIComponent(new URL(receiver.url).host)}`,
    '/ops/clients',
    '/ops/clients/new',
    () => clientPath,
    '/ops/members',
    '/ops/audit',
    '/ops/audit?actor=operator',
    '/ops/health',
  ];

  test('axe-core finds nothing on any page, and none is wider than the screen', async () => {
    receiver.behaviour = answer(200);
    const context = await browser.newContext({ colorScheme, bypassCSP: true });
    const page = await signIn(context);
    const faults: object[] = [];
    for (const one of PAGES) {
      const path = typeof one === 'string' ? one : one();
      await page.goto(usher.running.url + path);
      for (const width of [320, ...WIDTHS, 1920]) {
        await page.setViewportSize({ width, height: 900 });
        const found = { isTooWide: await isTooWide(page), violations: await violationsOf(page) };
        if (found.isTooWide || found.violations.length > 0) faults.push({ path, width, ...found });
      }
    }
    expect(faults).toEqual([]);
    await context.close();
  });
});
