import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Browser } from 'playwright-core';
import { isTooWide, violationsOf } from '../../support/axe.js';
import { launchBrowser, picture } from '../../support/browser.js';
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

test.each([
  ['/docs', 60_000],
  ['/docs/reference', 100_000],
])('%s needs at most %i bytes, all of this server', async (path, most) => {
  const page = await browser.newPage();
  const answers: Promise<{ url: string; bytes: number }>[] = [];
  page.on('requestfinished', (request) =>
    answers.push(
      request.sizes().then((sizes) => ({
        url: request.url(),
        bytes: sizes.responseHeadersSize + sizes.responseBodySize,
      })),
    ),
  );
  await page.goto(usher.running.url + path, { waitUntil: 'networkidle' });
  const finished = (await Promise.all(answers)).filter(({ url }) => !url.startsWith('data:'));
  expect(finished.length).toBeGreaterThan(0);
  expect(finished.filter(({ url }) => new URL(url).origin !== usher.running.url)).toEqual([]);
  expect(finished.reduce((sum, { bytes }) => sum + bytes, 0)).toBeLessThan(most);
  await page.close();
});

test('a reader finds a section by its words', async () => {
  const page = await browser.newPage();
  await page.goto(`${usher.running.url}/docs/tokens`);
  await page.getByRole('searchbox').fill('keysdigest');
  await page.getByRole('link', { name: /Prove that nothing is missing/ }).click();
  await page.waitForURL(/\/docs\/catching-up#prove-that-nothing-is-missing$/);
  await page.close();
});

describe.each([390, 768, 1280])('at %i pixels', (width) => {
  describe.each(['light', 'dark'] as const)('%s', (colorScheme) => {
    test.each(['', '/quick-start', '/limits', '/errors', '/reference'])(
      '/docs%s fits, and axe finds nothing wrong',
      async (path) => {
        const viewport = { width, height: 900 };
        const context = await browser.newContext({ viewport, colorScheme, bypassCSP: true });
        const page = await context.newPage();
        await page.goto(`${usher.running.url}/docs${path}`);
        await picture(page, `guides${path.replace('/', '-')}-${width}-${colorScheme}`);
        expect(await isTooWide(page)).toBe(false);
        expect(await violationsOf(page)).toEqual([]);
        await context.close();
      },
    );
  });
});

test('a search whose index could not be loaded loads it again at the next letter', async () => {
  const page = await browser.newPage();
  const answers = [503, 200];
  await page.route('**/search.json', (route) =>
    answers.shift() === 503 ? route.fulfill({ status: 503 }) : route.continue(),
  );
  await page.goto(`${usher.running.url}/docs/tokens`);
  await page.getByRole('searchbox').fill('keysdiges');
  await page.waitForLoadState('networkidle');
  await page.getByRole('searchbox').fill('keysdigest');
  await page.getByRole('link', { name: /Prove that nothing is missing/ }).waitFor();
  expect(answers).toEqual([]);
  await page.close();
});
