import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type Browser, type Page } from 'playwright-core';
import { launchBrowser, openConsole, picture } from '../../support/browser.js';
import { isTooWide } from '../../support/axe.js';
import { answer, TestReceiver } from '../../support/receiver.js';
import { TestUsher } from '../../support/usher.js';

const PHONE = { width: 390, height: 844 };
const DESKTOP = { width: 1100, height: 800 };

let usher: TestUsher;
let receiver: TestReceiver;
let browser: Browser;
beforeAll(async () => {
  usher = await TestUsher.start({ WEBHOOK_MAX_ATTEMPTS: '3' });
  receiver = await TestReceiver.start();
  browser = await launchBrowser();
});
afterAll(async () => {
  await browser.close();
  await usher.stop();
  receiver.close();
});

const signIn = (page: Page, path: string): Promise<void> => openConsole(page, usher.running.url + path);

test('Bull Board works under its policy and asks no other host for anything', async () => {
  const client = await usher.client(receiver.url);
  const { id } = await usher.webhook(await client.completedOrder(), 'SUCCESS');
  const context = await browser.newContext({ viewport: DESKTOP });
  const page = await context.newPage();
  const foreign: string[] = [];
  const faults: string[] = [];
  page.on('request', (request) => {
    if (new URL(request.url()).origin !== usher.running.url && !request.url().startsWith('data:'))
      foreign.push(request.url());
  });
  page.on('console', (message) => {
    if (message.type() === 'error') faults.push(message.text());
  });
  page.on('pageerror', (error) => faults.push(String(error)));
  await signIn(page, '/ops/queues');
  const board = page.frameLocator('iframe');
  for (const path of ['', '/queue/usher-webhook?status=completed', `/queue/usher-webhook/${id}?status=completed`]) {
    await page.goto(`${usher.running.url}/ops/queues${path}`);
    await board.getByText('usher-webhook').first().waitFor();
    await page.waitForLoadState('networkidle');
  }
  await board.getByText(id).first().waitFor();
  await picture(page, 'board');
  expect({ foreign, faults }).toEqual({ foreign: [], faults: [] });
  await context.close();
});

test('an operator logs in, finds a failed webhook, reads why, sends it again and sees it succeed, without JavaScript', async () => {
  receiver.behaviour = (response) => void response.writeHead(503).end('{"error":"the <b>kitchen</b> is closed"}');
  const client = await usher.client(receiver.url);
  const key = await client.completedOrder();
  const failed = await usher.webhook(key, 'FAILED');
  receiver.behaviour = answer(200);
  for (let n = 0; n < 3; n += 1) await usher.webhook(await client.completedOrder(), 'SUCCESS');

  const context = await browser.newContext({
    javaScriptEnabled: false,
    viewport: DESKTOP,
  });
  const page = await context.newPage();
  const faults: string[] = [];
  page.on('console', (message) => faults.push(message.text()));
  await signIn(page, '/ops');
  await picture(page, 'ops');
  await page.setViewportSize(PHONE);
  await picture(page, 'ops-phone');
  expect(await isTooWide(page)).toBe(false);

  await page.getByRole('searchbox').fill(key);
  await page.getByRole('button', { name: 'Search' }).click();
  expect(page.url()).toContain(failed.id);
  await page.getByText('the <b>kitchen</b> is closed').first().waitFor();
  expect(await page.getByText('the receiver answered 503').count()).toBe(3);
  await picture(page, 'ops-webhook-phone');
  expect(await isTooWide(page)).toBe(false);

  await page.getByRole('button', { name: 'Send again' }).click();
  await page.waitForURL(/\/ops\/webhooks\/(?!.*resend)/);
  expect(page.url()).not.toContain(failed.id);
  await usher.webhook(key, 'SUCCESS');
  await page.reload();
  await page.getByText('SUCCESS').first().waitFor();
  await page.getByText('delivered').first().waitFor();
  expect(receiver.of(key)).toHaveLength(4);
  expect(faults).toEqual([]);
});
