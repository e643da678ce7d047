import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { BACKEND } from '../../../support/backend.js';
import { OperatorBrowser } from '../../../support/operator-browser.js';
import { TestUsher } from '../../../support/usher.js';

const API = '/ops/queues/api/queues';

interface BoardQueue {
  name: string;
  readOnlyMode: boolean;
  hasWorkers: boolean | null;
}

let usher: TestUsher;
let operator: OperatorBrowser;
let viewer: OperatorBrowser;
beforeAll(async () => {
  usher = await TestUsher.start();
  operator = await OperatorBrowser.of(usher, 'ada');
  viewer = await OperatorBrowser.of(usher, 'vera', 'viewer');
});
afterAll(() => usher.stop());

async function queuesFor(browser: OperatorBrowser): Promise<BoardQueue[]> {
  const { status, text } = await browser.send('GET', API, { accept: 'application/json' });
  expect(status).toBe(200);
  return (JSON.parse(text) as { queues: BoardQueue[] }).queues;
}

test('Bull Board’s page has the navigation of the console, and loads nothing from other hosts', async () => {
  const { text, headers } = await operator.get('/ops/queues');
  for (const path of ['/ops', '/ops/notifications', '/ops/operators', '/ops/password'])
    expect(text).toContain(`href="${path}"`);
  expect(text).toMatch(/<a href="\/ops\/queues"\s+aria-current="page"/);
  expect(text).toContain('action="/ops/sign-out"');
  expect(text).not.toMatch(/(href|src)="https?:/);
  expect(headers.get('content-security-policy')).toContain("default-src 'self'");
});

test('it tells a viewer that all queues are read-only, and an operator that none is', async () => {
  expect((await queuesFor(viewer)).map(({ readOnlyMode }) => readOnlyMode)).toEqual([true, true, true, true]);
  expect((await queuesFor(operator)).map(({ readOnlyMode }) => readOnlyMode)).toEqual([false, false, false, false]);
});

test('it says on Redis that each queue has workers, and nothing of workers where they cannot be counted', async () => {
  const isRedis = BACKEND === 'mariadb';
  const { text } = await operator.get('/ops/queues');
  expect(text).toContain(`"showWorkers":${isRedis}`);
  const shown = (await queuesFor(operator)).map(({ name, hasWorkers }) => [name, hasWorkers]);
  expect(shown).toEqual(
    ['usher-webhook', 'usher-retry-run', 'usher-purge', 'usher-sandbox-operator'].map((name) => [
      name,
      isRedis ? true : null,
    ]),
  );
});
