import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { GUIDES } from '../../src/server/guides/guides.js';
import type { Settings } from '../support/backend.js';
import { freePort } from '../support/ports.js';
import { TestReceiver } from '../support/receiver.js';
import { TestUsher } from '../support/usher.js';
import { NOT_RUN } from './not-run.js';
import { type Block, blocksOf, servedBlocksOf, Shell } from './shell.js';

let usher: TestUsher;
let receiver: TestReceiver;
beforeAll(async () => {
  usher = await TestUsher.start();
  receiver = await TestReceiver.start();
});
afterAll(async () => {
  await usher.stop();
  receiver.close();
});

const QUICK_START = 'docs/quick-start.md';
const PAGES = [
  'README.md',
  ...readdirSync('docs', { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name)),
  'packages/receiver/README.md',
].filter((page) => existsSync(page));

/** What differs from run to run, on either side. */
const MASKS: [RegExp, string][] = [
  [/usher_sandbox_(access|refresh)_[A-Za-z0-9…]+/g, 'usher_sandbox_$1_…'],
  [/TW92aWVPcmRlcjpz[A-Za-z0-9…]+/g, 'TW92aWVPcmRlcjpz…'],
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, 'TIME'],
  [/\bs[A-Za-z0-9]{21}\b/g, 'ID'],
  [/http:\/\/127\.0\.0\.1:\d+/g, 'http://HOST'],
  [/"durationMs":\d+/g, '"durationMs":0'],
];
const masked = (json: string): unknown =>
  JSON.parse(MASKS.reduce((text, [pattern, mask]) => text.replace(pattern, mask), JSON.stringify(JSON.parse(json))));

const isCommand = ({ language }: Block): boolean => ['sh', 'bash', 'shell', 'console', 'zsh'].includes(language);
const isRun = (page: string, block: Block): boolean =>
  isCommand(block) &&
  !NOT_RUN.some(({ pages, starts }) => pages.includes(page) && starts.some((start) => block.code.startsWith(start)));

/** The ports of the documents' own service and receiver may be in use here. */
async function withFreePorts(): Promise<(code: string) => string> {
  const [port, receiverPort] = [await freePort(), await freePort()];
  return (code) => code.replaceAll(':3000', `:${port}`).replaceAll(/\b4000\b/g, String(receiverPort));
}

/** Pastes the commands of a page in their order; what a JSON block says must be what the command before it printed. */
async function follow(
  page: string,
  settings: Settings,
  here = (code: string): string => code,
  blocks = blocksOf(page),
): Promise<string> {
  const shell = new Shell(settings);
  let printed = '';
  let all = '';
  try {
    for (const block of blocks) {
      if (block.language === 'json' && printed !== '') expect(masked(printed)).toEqual(masked(block.code));
      printed = isRun(page, block) ? await shell.paste(here(block.code)) : '';
      all += printed;
    }
    return all;
  } finally {
    await shell.end();
  }
}

describe('every command can be pasted into one shell, from the start of its page, and prints what the page shows:', () => {
  const isFollowed = (page: string): boolean => blocksOf(page).some((block) => isRun(page, block));

  test.each(PAGES.filter((page) => page !== QUICK_START && isFollowed(page)))('%s', async (page) =>
    follow(page, { ...usher.settings, AUTH_URL: usher.running.url, NOTIFY_URL: receiver.url }, await withFreePorts()),
  );

  test(`${QUICK_START}, whose docs/try.sh starts its own service and receiver`, async () => {
    const port = String(await freePort());
    const printed = await follow(QUICK_START, { PORT: port, AUTH_URL: `http://127.0.0.1:${port}` });
    expect(printed).toMatch(/Starting Usher[^]*"status": "COMPLETED"[^]*signature valid[^]*"status": "SUCCESS"/);
  });

  test('docs/try.sh can be sourced twice, and then uses the service, the client and the receiver that are there', async () => {
    const port = String(await freePort());
    const shell = new Shell({ PORT: port, AUTH_URL: `http://127.0.0.1:${port}` });
    try {
      const told = 'echo "$CLIENT_ID $NOTIFY_URL $RECEIVER $(jobs -p | wc -l)"\n';
      const first = await shell.paste(`. docs/try.sh\n${told}`);
      const second = await shell.paste(`. docs/try.sh\n${told}`);
      expect(first).toContain('Starting Usher');
      expect(second).not.toContain('Starting Usher');
      expect(second).toContain(first.split('\n').at(-2));
    } finally {
      await shell.end();
    }
  });

  test('docs/try.sh starts no second service beside a running one, and stops at a step that fails with what to look at', async () => {
    const shell = new Shell({ ...usher.settings, AUTH_URL: usher.running.url, CLIENT_ID: 'none', CLIENT_SECRET: 'x' });
    const silent = new Shell({ AUTH_URL: 'http://127.0.0.1:1', PORT: 'none' });
    try {
      const told = await shell.paste('NOTIFY_URL=http://127.0.0.1:1/; . docs/try.sh; echo "status $?"; ls usher.log\n');
      expect(told).toMatch(/There is no token\. Check AUTH_URL.*\nstatus 1\n$/);
      await expect(silent.paste('. docs/try.sh; echo "status $?, client $CLIENT_ID"\n')).rejects.toThrow(
        /is not ready\. The last lines of usher\.log:\n[^]*PORT=none is invalid[^]*\nstatus 1, client \n/,
      );
    } finally {
      await Promise.all([shell.end(), silent.end()]);
    }
  });
});

describe('the commands of a served guide work against the server that serves it:', () => {
  test.each(GUIDES.filter((name) => blocksOf(`docs/${name}.md`).some((block) => isRun(`docs/${name}.md`, block))))(
    '%s',
    async (name) => {
      const client = await usher.client(receiver.url);
      const page = await fetch(`${usher.running.url}/docs/${name}`);
      const here = await withFreePorts();
      const filled = (code: string): string =>
        here(code).replace('YOUR_CLIENT_ID', client.id).replace('YOUR_CLIENT_SECRET', client.secret);
      await follow(`docs/${name}.md`, {}, filled, servedBlocksOf(await page.text()));
    },
  );
});

describe('a served guide', () => {
  const commandsOf = async (name: string, { id, secret }: { id: string; secret: string }): Promise<string[]> =>
    servedBlocksOf(await (await fetch(`${usher.running.url}/docs/${name}`)).text())
      .filter(isCommand)
      .map(({ code }) => code.replace('YOUR_CLIENT_ID', id).replace('YOUR_CLIENT_SECRET', secret));

  test('shows why the first receiver does not start', async () => {
    const [start = ''] = await commandsOf('receiving', await usher.client());
    const shell = new Shell({});
    try {
      expect(await shell.paste(start.replaceAll('4000', new URL(receiver.url).port))).toMatch(/port \d+ is in use/);
    } finally {
      await shell.end();
    }
  });

  test('shows a new secret, which nobody can read again', async () => {
    const [prepare, rotate] = await commandsOf('changing-secrets', await usher.client());
    const shell = new Shell({});
    try {
      expect(await shell.paste(`${prepare}${rotate}`)).toMatch(/^[A-Za-z0-9]{43}$/m);
    } finally {
      await shell.end();
    }
  });
});

test('every block of commands is run, or listed with a reason', () => {
  const commands = PAGES.flatMap((page) => blocksOf(page).map((block) => ({ page, block }))).filter(
    ({ page, block }) => isCommand(block) && !isRun(page, block),
  );
  for (const { pages, starts, reason } of NOT_RUN) {
    expect(reason).toMatch(/\w+ \w+ \w+/);
    for (const start of starts)
      expect([start, commands.some(({ page, block }) => pages.includes(page) && block.code.startsWith(start))]).toEqual(
        [start, true],
      );
  }
});

test('no block without a language hides commands', () => {
  const hidden = PAGES.flatMap((page) =>
    blocksOf(page)
      .filter(({ language, code }) => language === '' && /^(\$|curl|npm|node|export|docker|kubectl) /m.test(code))
      .map(({ code }) => [page, code]),
  );
  expect(hidden).toEqual([]);
});
