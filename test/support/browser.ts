import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';

const ARGUMENTS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** Starts the Chromium of this machine, or the one that the environment's CHROMIUM names. */
export const launchBrowser = (): Promise<Browser> =>
  chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ARGUMENTS });

/** Opens a page of the console at this address, and signs in as the first operator. */
export async function openConsole(page: Page, url: string): Promise<void> {
  await page.goto(url);
  await page.getByLabel('Name').fill('ops');
  await page.getByLabel('Password').fill('ops');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.waitForURL(url);
}

/**
 * Takes a picture of a page if the environment's PICTURES names a folder: `docs` renews those of the documents, and
 * `docs/operations` those of the console there. They are for people, not for the tests.
 */
export async function picture(page: Page, name: string, options: { fullPage?: boolean } = {}): Promise<void> {
  const { PICTURES: folder } = process.env;
  if (!folder) return;
  const path = join(folder, `${name}.png`);
  mkdirSync(dirname(path), { recursive: true });
  await page.screenshot({ path, ...options });
}
