import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { launchBrowser, openConsole, picture } from '../../support/browser.js';
import { isTooWide, violationsOf } from '../../support/axe.js';
import { eventually } from '../../support/eventually.js';
import { answer, TestReceiver } from '../../support/receiver.js';
import { type TestClient, TestUsher } from '../../support/usher.js';

let usher: TestUsher;
let receiver: TestReceiver;
let browser: Browser;
let client: TestClient;
beforeAll(async () => {
  usher = await TestUsher.start({ WEBHOOK_MAX_ATTEMPTS: '2' });
  receiver = await TestReceiver.start();
  client = await usher.client(receiver.url);
  browser = await launchBrowser();
});
afterAll(async () => {
  await browser.close();
  await usher.stop();
  receiver.close();
});

/** A page whose clock the test moves. */
async function open(path: string, timezoneId = 'Asia/Kuala_Lumpur'): Promise<Page> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, timezoneId, bypassCSP: true });
  const page = await context.newPage();
  await page.clock.install();
  await openConsole(page, usher.running.url + path);
  return page;
}

/** Lets the page refresh itself once. */
async function refresh(page: Page): Promise<{ status: number; bytes: number }> {
  const [response] = await Promise.all([
    page.waitForResponse((one) => one.url() === page.url()),
    page.clock.runFor(10_000),
  ]);
  return { status: response.status(), bytes: Number(response.headers()['content-length']) };
}

async function failedNotification(): Promise<string> {
  receiver.behaviour = (response) => void response.writeHead(500).end('no');
  return (await usher.webhook(await client.completedOrder(), 'FAILED')).id;
}

test('a refresh shows what is new, and keeps ticks, typed text, focus and the place of the page', async () => {
  const chosen = await failedNotification();
  const page = await open('/ops/notifications');
  const box = page.getByLabel(`Select the notification ${chosen}`);
  await box.check();
  const order = page.getByLabel('Order key');
  await order.fill('typed');
  expect((await refresh(page)).status).toBe(200);
  await eventually('nothing is new', async () => (await refresh(page)).status === 304);
  const another = await failedNotification();
  const { status, bytes } = await refresh(page);
  await page.getByLabel(`Select the notification ${another}`).waitFor();
  expect(status).toBe(200);
  expect(bytes).toBeLessThan(6_000);
  expect(await box.isChecked()).toBe(true);
  expect(await page.getByLabel(`Select the notification ${another}`).isChecked()).toBe(false);
  expect(await order.inputValue()).toBe('typed');
  expect(await page.evaluate('document.activeElement.name')).toBe('order');
  await page.context().close();
});

test('a refresh keeps open what was opened', async () => {
  await failedNotification();
  const page = await open('/ops');
  const numbers = page.locator('details', { hasText: 'Numbers' }).first();
  await numbers.locator('summary').click();
  await page.evaluate('scrollTo(0, 200)');
  await failedNotification();
  expect((await refresh(page)).status).toBe(200);
  expect(await numbers.getAttribute('open')).toBe('');
  expect(await page.evaluate('scrollY')).toBe(200);
  await page.context().close();
});

test('a refresh keeps the focus in its row, and says nothing again', async () => {
  receiver.behaviour = answer(200);
  const deliver = async () => usher.webhook(await client.completedOrder(), 'SUCCESS');
  const { id } = await deliver();
  const page = await open('/ops/notifications');
  await page.evaluate(
    "new MutationObserver(() => document.title = 'said').observe(document.querySelector('.live'), {childList: true, subtree: true})",
  );
  for (const focused of [page.locator(`a[href$="${id}"]`), page.locator(`[data-copy="${id}"]`)]) {
    await focused.focus();
    const another = await deliver();
    expect((await refresh(page)).status).toBe(200);
    await page.locator(`tr:has([href$="${another.id}"]) ~ tr [href$="${id}"]`).waitFor();
    expect(await focused.and(page.locator(':focus')).count()).toBe(1);
  }
  expect(await page.title()).not.toBe('said');
  await page.context().close();
});

test('a refresh leaves a chart as it is while somebody reads its values', async () => {
  const page = await open('/ops');
  await page.locator('figure svg').first().focus();
  await page.keyboard.press('ArrowLeft');
  const value = page.locator('figure output').first();
  const shown = await value.textContent();
  await failedNotification();
  expect((await refresh(page)).status).toBe(200);
  expect(await value.textContent()).toBe(shown);
  await page.context().close();
});

test('what was done is said once, not by a page that is reloaded or refreshed later', async () => {
  const page = await open('/ops');
  await page.goto(`${usher.running.url}/ops?range=7d&done=resume-queue`);
  await page.getByText('The queue is resumed.').waitFor();
  expect(page.url()).toBe(`${usher.running.url}/ops?range=7d`);
  await refresh(page);
  await page.getByText('The queue is resumed.').waitFor({ state: 'detached' });
  await page.context().close();
});

test('a page says that it shows an older state if the server gives no answer to a refresh', async () => {
  const page = await open('/ops');
  await page.route(page.url(), () => undefined);
  await Promise.all([page.waitForRequest(page.url()), page.clock.runFor(10_000)]);
  await page.getByText('Not updated: this is an older state').waitFor();
  await page.context().close();
});

test('the key / opens the search', async () => {
  const page = await open('/ops/clients');
  await page.getByRole('heading', { level: 1 }).click();
  await page.keyboard.press('/');
  await page.keyboard.type('a/b');
  expect(await page.getByRole('searchbox').inputValue()).toBe('a/b');
  await page.context().close();
});

test('a form that was sent cannot be sent by a second click; back in the page it can', async () => {
  const page = await open('/ops/clients/new');
  await page.getByLabel('Name').fill('Clicked twice');
  const button = page.getByRole('button', { name: 'Create the client' });
  // So that the page stays, as it does until the answer comes.
  await page.evaluate("addEventListener('submit', (event) => event.preventDefault())");
  await button.click();
  expect(await button.isDisabled()).toBe(true);
  await page.evaluate("dispatchEvent(new Event('pageshow'))");
  expect(await button.isDisabled()).toBe(false);
  await page.context().close();
});

test('times are those of the browser, also the ones that a filter takes', async () => {
  const id = await failedNotification();
  const page = await open(`/ops/webhooks/${id}`);
  const shown = page.locator('dd time').first();
  const at = new Date(String(await shown.getAttribute('datetime')));
  const local = at.toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'medium', timeZone: 'Asia/Kuala_Lumpur' });
  expect(await shown.textContent()).toMatch(new RegExp(`^${local} · (now|\\d+ (s|min) ago)$`));
  await page.goto(`${usher.running.url}/ops/notifications`);
  await page.getByLabel('Created since (your time)').fill('2026-01-31 18:00');
  await page.getByRole('button', { name: 'Filter' }).click();
  await page.waitForURL(/since=/);
  expect(new URL(page.url()).searchParams.get('since')).toBe('2026-01-31 18:00+08:00');
  expect(await page.locator('.field-fault').count()).toBe(0);
  await page.getByLabel('Created since (your time)').fill('2026-02-31');
  await page.getByRole('button', { name: 'Filter' }).click();
  await page.locator('.field-fault').waitFor();
  await page.context().close();
});

test('a chart shows its values to a pointer, a finger and the arrow keys', async () => {
  await failedNotification();
  const page = await open(`/ops/receivers/${encodeURIComponent(new URL(receiver.url).host)}`);
  const [chart, value] = [page.locator('figure svg').first(), page.locator('figure output').first()];
  await chart.focus();
  expect(await value.textContent()).toMatch(/^\d\d-\d\d \d\dh UTC: \d+ succeeded, [1-9]\d* failed$/);
  const last = await value.textContent();
  await page.keyboard.press('ArrowLeft');
  expect(await value.textContent()).not.toBe(last);
  await page.locator('.at').nth(3).hover();
  expect(await value.textContent()).toMatch(/UTC: 0 succeeded, 0 failed$/);
  expect(await violationsOf(page)).toEqual([]);
  await page.context().close();
});

test('Bull Board is inside the frame of all pages, whose address is that of its page', async () => {
  const page = await open('/ops/queues');
  await page.getByRole('searchbox').first().waitFor();
  const board = page.frameLocator('iframe');
  await board.getByText('usher-webhook').first().click();
  await page.clock.runFor(1_000);
  expect(new URL(page.url()).pathname).toBe('/ops/queues/queue/usher-webhook');
  expect(await violationsOf(page, ['iframe'])).toEqual([]);
  await page.context().close();
});

test('no page is wider than its screen', async () => {
  const id = await failedNotification();
  const page = await open('/ops');
  const host = encodeURIComponent(new URL(receiver.url).host);
  const paths = {
    overview: '',
    webhook: `/webhooks/${id}`,
    list: '/notifications',
    receivers: '/receivers',
    receiver: `/receivers/${host}`,
    clients: '/clients',
    client: `/clients/${client.id}`,
    members: '/members',
    audit: '/audit',
    health: '/health',
    queues: '/queues',
    operators: '/operators',
  };
  for (const [name, path] of Object.entries(paths)) {
    await page.goto(`${usher.running.url}/ops${path}`);
    for (const colorScheme of ['light', 'dark'] as const)
      for (const width of [390, 1280]) {
        await page.emulateMedia({ colorScheme });
        await page.setViewportSize({ width, height: 900 });
        expect({ name, width, isTooWide: await isTooWide(page) }).toEqual({ name, width, isTooWide: false });
        await picture(page, `frame/${name}-${width}-${colorScheme}`, { fullPage: true });
      }
  }
  await page.context().close();
});
