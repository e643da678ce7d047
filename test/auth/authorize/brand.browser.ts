import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { Consent } from '../../../src/clients/authorization.entity.js';
import { Client } from '../../../src/clients/client.entity.js';
import { MembersService } from '../../../src/members/members.service.js';
import { isTooWide, violationsOf } from '../../support/axe.js';
import { launchBrowser, picture } from '../../support/browser.js';
import { freePort } from '../../support/ports.js';
import { newFolder } from '../../support/process.js';
import type { TestClient, TestUsher } from '../../support/usher.js';
import { application, authorizePath, member, PASSWORD, startWithIssuer } from './support.js';

/** A logo whose script would change the page if it ran. */
const LOGO = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 216 48" onload="top.document.title = 'script'">
  <script>top.document.title = 'script'</script>
  <circle cx="24" cy="24" r="20" fill="#8a1538"/><path d="M18 14l17 10-17 10z" fill="#fff"/>
  <text x="54" y="31" font-family="sans-serif" font-size="21" font-weight="700" fill="#222">Golden Screen</text>
</svg>`;

let usher: TestUsher;
let client: TestClient;
let browser: Browser;
let partner: Server;
let redirectUri: string;

beforeAll(async () => {
  const logo = join(newFolder(), 'logo.svg');
  writeFileSync(logo, LOGO);
  usher = await startWithIssuer({
    BRAND_NAME: 'Golden Screen',
    BRAND_LOGO: logo,
    BRAND_COLOR: '#8a1538',
    BRAND_HELP_URL: 'https://cinema.example/help',
    BRAND_PRIVACY_URL: 'https://cinema.example/privacy',
    BRAND_FORGOTTEN_PASSWORD_URL: 'https://cinema.example/password',
  });
  const port = await freePort();
  redirectUri = `http://localhost:${port}/callback`;
  partner = createServer((_, response) => void response.end('Welcome back')).listen(port, 'localhost');
  await once(partner, 'listening');
  client = await application(usher, { redirectUris: [redirectUri] });
  await usher.dataSource.manager.update(Client, { id: client.id }, { name: 'Seat Finder' });
  browser = await launchBrowser();
});
afterAll(async () => {
  await browser.close();
  partner.closeAllConnections();
  partner.close();
  await usher.stop();
});

const open = async (context: BrowserContext): Promise<Page> => {
  const page = await context.newPage();
  await page.goto(usher.running.url + authorizePath(client, { redirect_uri: redirectUri }));
  return page;
};

async function signIn(page: Page, name: string, password = PASSWORD): Promise<void> {
  await page.getByLabel('Member name or e-mail address').fill(name);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

/** What the page at the redirect URI got. */
async function arrival(page: Page): Promise<Record<string, string>> {
  await page.getByText('Welcome back').waitFor();
  return Object.fromEntries(new URL(page.url()).searchParams);
}

const DENIED = { error: 'access_denied', error_description: 'the account holder declined', state: 'state-1' };

test('the pages name the cinema and the application, show the logo and the links, and a script in the logo never runs', async () => {
  const { name, id } = await member(usher);
  const context = await browser.newContext();
  const page = await open(context);
  const faults: string[] = [];
  page.on('console', (message) => faults.push(message.text()));
  await page.getByRole('heading', { name: 'Sign in to Golden Screen' }).waitFor();
  await page.getByText('Seat Finder would like to use your Golden Screen account.').waitFor();
  const isDrawn = "(image => image.complete && image.naturalWidth > 0)(document.querySelector('header img'))";
  const expectBrand = async (title: string) => {
    expect([await page.evaluate(isDrawn), await page.title()]).toEqual([true, `${title} · Golden Screen`]);
    expect(await page.getByRole('img').getAttribute('alt')).toBe('Golden Screen');
    const links = { Help: 'help', Privacy: 'privacy' };
    for (const [text, path] of Object.entries(links))
      expect(await page.getByRole('link', { name: text }).getAttribute('href')).toBe(`https://cinema.example/${path}`);
  };
  await expectBrand('Sign in to Golden Screen');
  const forgotten = page.getByRole('link', { name: 'Forgotten your password?' });
  expect(await forgotten.getAttribute('href')).toBe('https://cinema.example/password');
  await signIn(page, name);
  const question = 'Allow Seat Finder to use your Golden Screen account?';
  await page.getByRole('heading', { name: question }).waitFor();
  await expectBrand(question);
  await page.getByRole('button', { name: 'Allow' }).click();
  expect(await arrival(page)).toMatchObject({ code: expect.any(String), state: 'state-1' });
  // Noon in UTC is the same day almost everywhere.
  await usher.dataSource.manager.update(Consent, { ownerId: id }, { givenAt: Date.UTC(2026, 10, 23, 12) });
  await page.goto(`${usher.running.url}/auth/connections`);
  await page.getByText('Connected on 23 November 2026', { exact: true }).waitFor();
  await expectBrand('Connected applications');
  await page.getByRole('button', { name: 'Remove access of Seat Finder' }).click();
  await page.getByText('No application can use your Golden Screen account.').waitFor();
  expect(faults).toEqual([]);
  await context.close();
});

test('Cancel tells the client at once, on the sign-in page without a password and on the consent page', async () => {
  const { name } = await member(usher);
  const context = await browser.newContext({ javaScriptEnabled: false });
  const page = await open(context);
  await page.getByRole('button', { name: 'Cancel' }).click();
  expect(await arrival(page)).toEqual({ ...DENIED, iss: usher.running.url });
  const again = await open(context);
  await signIn(again, name, 'a wrong password');
  await again.getByRole('alert').waitFor();
  await again.getByRole('button', { name: 'Cancel' }).click();
  expect(await arrival(again)).toEqual({ ...DENIED, iss: usher.running.url });
  const signedIn = await open(context);
  await signIn(signedIn, name);
  await signedIn.getByRole('button', { name: 'Cancel' }).click();
  expect(await arrival(signedIn)).toEqual({ ...DENIED, iss: usher.running.url });
  await context.close();
});

/** The pictures in the documents. */
const DOCUMENTED = ['sign-in', 'consent', 'connected-applications'];

describe.each([
  ['light', 'amelie@cinema.example'],
  ['dark', 'bruno@cinema.example'],
] as const)('in %s colours', (colorScheme, name) => {
  test('axe-core finds nothing on any page, and none is wider than the screen', async () => {
    await usher.running.app.get(MembersService, { strict: false }).create(name, PASSWORD);
    const context = await browser.newContext({ colorScheme, bypassCSP: true });
    const page = await open(context);
    const check = async (title: string) => {
      for (const width of [390, 1280]) {
        await page.setViewportSize({ width, height: 844 });
        const found = { title, width, isTooWide: await isTooWide(page), faults: await violationsOf(page) };
        expect(found).toEqual({ title, width, isTooWide: false, faults: [] });
        const isOfDocuments = DOCUMENTED.includes(title) && colorScheme === 'light' && width === 390;
        await picture(page, isOfDocuments ? title : `members/${title}-${width}-${colorScheme}`);
      }
    };
    await check('sign-in');
    await signIn(page, name, 'a wrong password');
    await page.getByRole('alert').waitFor();
    await check('wrong-password');
    await signIn(page, name);
    await page.getByRole('button', { name: 'Allow' }).waitFor();
    await check('consent');
    await page.getByRole('button', { name: 'Allow' }).click();
    await arrival(page);
    for (const [title, path] of [
      ['connected-applications', '/auth/connections'],
      ['sign-out', '/auth/sign-out'],
      ['fault', '/auth/authorize?client_id=nobody'],
    ] as const) {
      await page.goto(usher.running.url + path);
      await check(title);
    }
    await context.close();
  });
});
