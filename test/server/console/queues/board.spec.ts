import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { BACKEND } from '../../../support/backend.js';
import { OperatorBrowser } from '../../../support/operator-browser.js';
import { TestUsher } from '../../../support/usher.js';

const API = '/ops/queues/api/queues';

interface BoardQueue {
  name: string;
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

test('a browser gets Bull Board inside the frame of the console, which loads nothing from other hosts', async () => {
  const { text } = await operator.get('/ops/queues/queue/usher-purge?status=failed');
  for (const path of ['/ops', '/ops/notifications', '/ops/operators', '/ops/password'])
    expect(text).toContain(`href="${path}"`);
  expect(text).toMatch(/<a href="\/ops\/queues"\s+aria-current="page"/);
  expect(text).toContain('action="/ops/sign-out"');
  expect(text).toContain('role="search"');
  expect(text).toContain('<span class="u-env sandbox">sandbox</span>');
  const [, address = ''] = /<iframe [^>]*src="([^"]+)"/.exec(text) ?? [];
  expect(address).toBe('/ops/queues/queue/usher-purge?status=failed&amp;board');
  for (const [path, headers] of [
    [address.replace('&amp;', '&'), {}],
    ['/ops/queues', { 'sec-fetch-dest': 'iframe' }],
  ] as const) {
    const board = await operator.get(path, headers);
    expect(board.text).toContain('id="root"');
    expect(board.text).not.toMatch(/(href|src)="https?:/);
    expect(board.headers.get('content-security-policy')).toMatch(/^default-src 'self'; .*frame-ancestors 'self'$/);
  }
});

test('a viewer reads the same as an operator, is told so, and its changes are refused with a reason', async () => {
  expect((await queuesFor(viewer)).map(({ name }) => name)).toEqual(
    (await queuesFor(operator)).map(({ name }) => name),
  );
  expect((await viewer.get('/ops/queues')).text).toContain('Your role is viewer');
  expect((await operator.get('/ops/queues')).text).not.toContain('Your role is viewer');
  const headers = { accept: 'application/json', origin: usher.running.url };
  const { status, text } = await viewer.send('PUT', `${API}/usher-purge/pause`, headers);
  const { error, message, detail } = JSON.parse(text) as Record<string, string>;
  expect({ status, error, message }).toEqual({ status: 403, error: 'Forbidden', message: detail });
  expect(detail).toContain('your role is viewer');
});

test('Bull Board says on Redis that each queue has workers, and says nothing of workers where they cannot be counted', async () => {
  const isRedis = BACKEND === 'mariadb';
  const { text } = await operator.get('/ops/queues?board');
  expect(text).toContain(`"showWorkers":${isRedis}`);
  const shown = (await queuesFor(operator)).map(({ name, hasWorkers }) => [name, hasWorkers]);
  expect(shown).toEqual(
    ['usher-webhook', 'usher-retry-run', 'usher-purge', 'usher-sandbox-operator'].map((name) => [
      name,
      isRedis ? true : null,
    ]),
  );
});
