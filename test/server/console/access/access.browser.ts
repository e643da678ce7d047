import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type Browser, type BrowserContext, type BrowserContextOptions, type Page } from 'playwright-core';
import { OperatorsService } from '../../../../src/operators/operators.service.js';
import { launchBrowser, picture } from '../../../support/browser.js';
import { isTooWide, violationsOf } from '../../../support/axe.js';
import { TestReceiver } from '../../../support/receiver.js';
import { TestUsher } from '../../../support/usher.js';

const PASSWORD = 'a password of the tests';
const WIDTHS = [320, 390, 1280, 1920];

let usher: TestUsher;
let receiver: TestReceiver;
let browser: Browser;
let webhook: string;
beforeAll(async () => {
  usher = await TestUsher.start();
  receiver = await TestReceiver.start();
  const client = await usher.client(receiver.url);
  webhook = (await usher.webhook(await client.completedOrder(), 'SUCCESS')).id;
  const operators = usher.running.app.get(OperatorsService, { strict: false });
  await operators.create({ name: 'ada', password: PASSWORD, role: 'operator' });
  await operators.create({ name: 'vera', password: PASSWORD, role: 'viewer' });
  browser = await launchBrowser();
});
afterAll(async () => {
  await browser.close();
  await usher.stop();
  receiver.close();
});

async function signIn(context: BrowserContext, name: string, path = '/ops'): Promise<Page> {
  const page = await context.newPage();
  await page.goto(usher.running.url + path);
  await page.getByLabel('Name').fill(name);
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.waitForURL(usher.running.url + path);
  return page;
}

const context = (options: BrowserContextOptions): Promise<BrowserContext> =>
  browser.newContext({ baseURL: usher.running.url, ...options });

test('an operator signs in, creates a viewer and signs out, without JavaScript', async () => {
  const own = await context({ javaScriptEnabled: false, viewport: { width: 390, height: 844 } });
  const page = await signIn(own, 'ada', '/ops/operators');
  await page.getByLabel('Name').fill('Walter');
  await page.getByLabel('Role').selectOption('viewer');
  await page.getByRole('button', { name: 'Create operator' }).click();
  await page.getByText('It is not shown again').waitFor();
  await page.getByRole('link', { name: 'All operators' }).click();
  await page.getByRole('link', { name: 'walter' }).click();
  await page.getByRole('button', { name: 'Disable' }).click();
  await page.getByText('disabled').first().waitFor();
  await page.getByRole('button', { name: 'Menu' }).click();
  await page.getByRole('link', { name: 'Overview', exact: true }).click();
  expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('Overview');
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  await page.goto('/ops');
  expect(new URL(page.url()).pathname).toBe('/ops/sign-in');
  await own.close();
});

test('the keyboard reaches the content first, then the navigation, and Escape closes the menu', async () => {
  const own = await context({ viewport: { width: 390, height: 844 } });
  const page = await signIn(own, 'ada');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  expect(await page.evaluate('document.activeElement.id')).toBe('content');
  await page.getByRole('button', { name: 'Menu' }).press('Enter');
  const link = page.getByRole('link', { name: 'Operators', exact: true });
  await link.waitFor();
  await page.keyboard.press('Escape');
  await link.waitFor({ state: 'hidden' });
  await own.close();
});

test('what a viewer’s click in Bull Board would change is refused with the reason, and an operator’s is done', async () => {
  // A browser for each: Chromium has hung while it opened a page just after one with the frame of the board was closed.
  const answerFor = async (name: string, isRefused: boolean) => {
    const own = await launchBrowser();
    const page = await signIn(
      await own.newContext({ viewport: { width: 1280, height: 900 } }),
      name,
      '/ops/queues/queue/usher-webhook?status=completed',
    );
    await page.getByRole('button', { name: 'Sign out' }).waitFor();
    const board = page.frameLocator('iframe');
    await board.getByText(webhook).first().waitFor();
    await picture(page, `board-${name}`);
    await board.getByRole('button', { name: /clean/i }).first().click();
    const answer = isRefused
      ? board.getByText('your role is viewer').first().waitFor()
      : board.getByText(webhook).first().waitFor({ state: 'hidden' });
    // The message is shown for a few seconds, so the wait for it begins before the click.
    await Promise.all([answer, board.getByRole('button', { name: 'Confirm' }).click()]);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await own.close();
  };
  await answerFor('vera', true);
  await answerFor('ada', false);
});

describe.each(['light', 'dark'] as const)('in %s colours', (colorScheme) => {
  const PAGES = {
    overview: '/ops',
    webhook: () => `/ops/webhooks/${webhook}`,
    operators: '/ops/operators',
    operator: '/ops/operators/vera',
    own: '/ops/operators/ada',
    password: '/ops/password',
    none: '/ops/webhooks/none',
  };

  test('axe-core finds nothing, and no page is wider than the screen', async () => {
    const own = await context({ colorScheme, bypassCSP: true });
    const stranger = await own.newPage();
    await stranger.goto('/ops/sign-in');
    expect(await violationsOf(stranger)).toEqual([]);
    await picture(stranger, `sign-in-${colorScheme}`);
    const page = await signIn(own, 'ada');
    for (const [name, path] of Object.entries(PAGES)) {
      await page.goto(typeof path === 'string' ? path : path());
      for (const width of WIDTHS) {
        await page.setViewportSize({ width, height: 900 });
        expect({ name, width, isTooWide: await isTooWide(page) }).toEqual({ name, width, isTooWide: false });
        await picture(page, `${name}-${width}-${colorScheme}`);
        expect({ name, width, found: await violationsOf(page) }).toEqual({ name, width, found: [] });
      }
    }
    await own.close();
  });
});
