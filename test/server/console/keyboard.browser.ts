import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { launchBrowser, openConsole } from '../../support/browser.js';
import { TestUsher } from '../../support/usher.js';

let usher: TestUsher;
let browser: Browser;
beforeAll(async () => {
  usher = await TestUsher.start();
  browser = await launchBrowser();
});
afterAll(async () => {
  await browser.close();
  await usher.stop();
});

async function open(path: string): Promise<Page> {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  await openConsole(page, usher.running.url + path);
  return page;
}

test('the bar at the top covers no part of a page that is jumped to', async () => {
  const page = await open(`/ops/clients/${(await usher.client()).id}`);
  await page.getByRole('link', { name: 'Change, rotate or disable' }).click();
  const [bar, heading] = [page.locator('header'), page.getByRole('heading', { name: 'Changes' })];
  const [above, below] = [await bar.boundingBox(), await heading.boundingBox()];
  expect(below?.y).toBeGreaterThanOrEqual(above?.height ?? Infinity);
  await page.close();
});

test('on a phone the links that sort a list are shown while one has the focus', async () => {
  await usher.client();
  const page = await open('/ops/clients');
  await page.setViewportSize({ width: 390, height: 800 });
  const head = page.locator('thead');
  expect((await head.boundingBox())?.height).toBe(1);
  await head.getByRole('link', { name: 'Created' }).focus();
  expect((await head.boundingBox())?.height).toBeGreaterThan(20);
  await page.close();
});

test('what was typed is still there when an error is left by Back', async () => {
  const page = await open('/ops/clients/new');
  await page.getByLabel('Name').fill('Typed');
  await page.route(`${usher.running.url}/ops/clients`, (route) => route.fulfill({ status: 503, body: 'no answer' }));
  await page.getByRole('button', { name: 'Create the client' }).click();
  await page.getByText('no answer').waitFor();
  await page.goBack();
  expect(await page.getByLabel('Name').inputValue()).toBe('Typed');
  await page.close();
});
