import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { CLI, newFolder } from '../support/process.js';
import { TestReceiver } from '../support/receiver.js';
import { TestUsher } from '../support/usher.js';
import { NOT_RUN } from './not-run.js';

const run = promisify(execFile);

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
  [/\b[sp][A-Za-z0-9]{21}\b/g, 'ID'],
  [/http:\/\/127\.0\.0\.1:\d+/g, 'http://HOST'],
  [/"durationMs":\d+/g, '"durationMs":0'],
];
const masked = (json: string): unknown =>
  JSON.parse(MASKS.reduce((text, [pattern, mask]) => text.replace(pattern, mask), JSON.stringify(JSON.parse(json))));

interface Block {
  language: string;
  code: string;
}

/** The fenced blocks of a page, also those within a list. A block of `sh` is for the reader's own shell. */
const blocksOf = (page: string): Block[] =>
  [...readFileSync(page, 'utf8').matchAll(/^( *)```(\w*)\n([^]*?)^ *```$/gm)].map(([, indent, language, code]) => ({
    language: language ?? '',
    code: String(code).replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
  }));

const isCommand = ({ language }: Block): boolean => ['sh', 'bash', 'shell', 'console', 'zsh'].includes(language);
const isRun = (page: string, { code }: Block): boolean =>
  !NOT_RUN.some(({ pages, starts }) => pages.includes(page) && starts.some((start) => code.startsWith(start)));

/** In a checkout `npm run -s usher -- …` is the built command; here it is the code under test. */
const PRELUDE = `set -e; npm() { if [ "$1 $2" = "run -s" ]; then shift 4; "${process.execPath}" "${resolve(CLI)}" "$@"; else "${process.execPath}" "${resolve(CLI)}" serve; fi; }; export -f npm`;
const END = '==== end of a block ====';

/** Pastes the commands of a page into one shell, in their order; returns what each block printed. */
async function paste(blocks: Block[], settings: Record<string, string>): Promise<string[]> {
  const { PATH = '', HOME = '' } = process.env;
  const folder = newFolder();
  const script = [PRELUDE, ...blocks.flatMap(({ code }) => [code, `echo; echo '${END}'`])].join('\n');
  const within = `cd "${folder}"; ln -s "${resolve('docs')}" docs; { ${script}\n}; kill $(jobs -p) 2> /dev/null || true`;
  const { stdout } = await run('bash', ['-c', within], { env: { PATH, HOME, ...settings }, timeout: 120_000 });
  return stdout.split(`\n${END}\n`).slice(0, blocks.length);
}

describe('every command can be pasted into one shell, from the start of its page, and answers what the page shows:', () => {
  const pages = PAGES.filter((page) => blocksOf(page).some((block) => isCommand(block) && isRun(page, block)));

  test.each(pages)('%s', async (page) => {
    const blocks = blocksOf(page);
    const commands = blocks.filter((block) => isCommand(block) && isRun(page, block));
    const own = page === 'README.md' ? await ownSandbox() : null;
    const settings = own ?? { ...usher.settings, AUTH_URL: usher.running.url, NOTIFY_URL: receiver.url };
    const printed = await paste(commands, settings);
    for (const [index, { language, code }] of blocks.entries()) {
      const before = blocks[index - 1];
      if (language !== 'json' || !before || !commands.includes(before)) continue;
      expect(masked(printed[commands.indexOf(before)] ?? '')).toEqual(masked(code));
    }
  });
});

test('every block of commands is run, or listed with a reason', () => {
  const written = PAGES.flatMap((page) => blocksOf(page).filter(isCommand).map((block) => ({ page, ...block })));
  for (const { pages, starts, reason } of NOT_RUN) {
    expect(reason).toMatch(/\w+ \w+/);
    for (const start of starts)
      expect([start, written.some(({ page, code }) => pages.includes(page) && code.startsWith(start))]).toEqual([start, true]);
  }
  const unnamed = PAGES.flatMap((page) => blocksOf(page).filter(({ language, code }) => language === '' && /^(curl|npm|usher|\$ )/m.test(code)).map(({ code }) => [page, code]));
  expect(unnamed).toEqual([]);
});
