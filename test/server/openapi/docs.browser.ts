import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { type Browser, type BrowserContext, type Page } from 'playwright-core';
import { launchBrowser, picture } from '../../support/browser.js';
import { type TestClient, TestUsher } from '../../support/usher.js';

const DESKTOP = { width: 1280, height: 800 };
const PHONE = { width: 390, height: 844 };

let usher: TestUsher;
let client: TestClient;
let browser: Browser;
/** Requests to other hosts, violations of the policy, and errors of scripts. */
let faults: string[];
beforeAll(async () => {
  usher = await TestUsher.start();
  client = await usher.client();
  browser = await launchBrowser();
});
beforeEach(() => {
  faults = [];
});
afterAll(async () => {
  await browser.close();
  await usher.stop();
});

/** Opens the page and waits until the viewer shows the document. */
async function open(context: BrowserContext, path = '/docs/try'): Promise<Page> {
  const page = await context.newPage();
  page.on('request', (request) => {
    const { origin, protocol } = new URL(request.url());
    if (origin !== usher.running.url && protocol !== 'data:') faults.push(`request to ${request.url()}`);
  });
  page.on('console', (message) => {
    if (message.type() === 'error') faults.push(message.text());
  });
  page.on('pageerror', (error) => faults.push(String(error)));
  await page.goto(`${usher.running.url}${path}`);
  await page.getByRole('heading', { name: 'Usher', exact: true }).waitFor();
  return page;
}

const isTooWide = (page: Page): Promise<boolean> =>
  page.evaluate('document.documentElement.scrollWidth > document.documentElement.clientWidth');

/** Presses a button of the dialog, and returns the response to the request that this sends. */
async function press(page: Page, name: RegExp, path: string) {
  const response = page.waitForResponse((answer) => new URL(answer.url()).pathname === path);
  await page.getByRole('dialog').getByRole('button', { name }).first().click();
  return response;
}

test('an integrator gets a token and creates an order from the page, and what was entered is not stored', async () => {
  const context = await browser.newContext({ viewport: DESKTOP });
  const page = await open(context);

  await page.goto(`${usher.running.url}/docs/try#tag/movie-orders/POST/movie-orders`);
  await page.getByRole('button', { name: 'Test Request (post /movie-orders)' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.locator('[data-placeholder="12345"]').fill(client.id);
  await dialog.locator('[placeholder=XYZ123]').fill(client.secret);
  const tokens = await press(page, /^Authorize$/, '/auth/token');
  const { access_token: token } = (await tokens.json()) as { access_token: string };
  await dialog.getByText('Access Token', { exact: true }).waitFor();
  await picture(page, 'api-page-try-it');
  const created = await press(page, /^Send/, '/movie-orders');
  expect(created.status()).toBe(201);
  const { key } = (await created.json()) as { key: string };
  expect((await client.call('GET', `/movie-orders/${key}`)).body).toMatchObject({ key, status: 'PENDING' });

  const stored = String(
    await page.evaluate('JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])'),
  );
  for (const secret of [client.secret, token]) expect(stored).not.toContain(secret);
  expect(faults).toEqual([]);
  await context.close();
});

describe.each([
  ['1280', DESKTOP],
  ['390', PHONE],
])('at %s pixels', (width, viewport) => {
  test.each(['light', 'dark'] as const)('the workbench fits: %s', async (colorScheme) => {
    const context = await browser.newContext({ viewport, colorScheme });
    const page = await open(context);
    await picture(page, `api-page-${width}-${colorScheme}`);
    expect(await isTooWide(page)).toBe(false);
    const background = await page.evaluate('getComputedStyle(document.body).backgroundColor');
    expect(/^rgb\(2\d\d/.test(String(background))).toBe(colorScheme === 'light');
    expect(faults).toEqual([]);
    await context.close();
  });
});

test('the viewer uses PKCE where the grant is available, and else does not show the grant', async () => {
  const withCodes = await TestUsher.start({ USHER_AUTH_URL: 'http://localhost:3999' });
  const context = await browser.newContext({ viewport: DESKTOP });
  const dialogAt = async (url: string) => {
    const page = await context.newPage();
    await page.goto(`${url}/docs/try#tag/movie-orders/POST/movie-orders`);
    await page.getByRole('button', { name: 'Test Request (post /movie-orders)' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('Token URL').waitFor();
    return dialog;
  };
  expect(await (await dialogAt(usher.running.url)).getByText('authorizationCode').count()).toBe(0);
  const dialog = await dialogAt(withCodes.running.url);
  await dialog.getByText('authorizationCode').click();
  await dialog.getByText('SHA-256').waitFor();
  expect(await dialog.getByText('http://localhost:3999/auth/authorize').count()).toBe(1);
  await context.close();
  await withCodes.stop();
});

test('operations can be searched, samples are in several languages, and the internal operations stand apart', async () => {
  const httpCredentials = { username: 'internal', password: 'internal' };
  const context = await browser.newContext({ viewport: DESKTOP, httpCredentials });
  const page = await open(context);
  await page
    .getByRole('button', { name: /Search/ })
    .first()
    .click();
  await page.getByRole('dialog').getByRole('combobox').fill('sample notification');
  await page.getByRole('dialog').getByText('Send a sample notification').first().click();
  await page.waitForURL(/#tag\/webhooks\/POST\/webhooks\/test$/);
  await page.goto(`${usher.running.url}/docs/try#tag/tokens/POST/auth/token`);
  await page.getByText('-u "$CLIENT_ID:$CLIENT_SECRET"').first().waitFor();
  await page.goto(`${usher.running.url}/docs/try#description/introduction`);
  await page.getByText('Python', { exact: true }).first().click();
  await page.goto(`${usher.running.url}/docs/try#tag/movie-orders/POST/movie-orders`);
  await page.getByText('http.client.HTTPConnection').first().waitFor();
  expect(await page.getByText('/internal/movie-orders').count()).toBe(0);
  await page.goto(`${usher.running.url}/docs/internal`);
  await page.getByRole('heading', { name: 'Usher: internal operations' }).waitFor();
  await page.getByText('/internal/movie-orders').first().waitFor();
  expect(faults).toEqual([]);
  await context.close();
});
