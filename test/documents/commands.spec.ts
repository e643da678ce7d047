import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { CLI } from '../support/process.js';
import { TestReceiver } from '../support/receiver.js';
import { TestUsher } from '../support/usher.js';

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

/** In a checkout `npm run -s usher -- …` is the built command; here it is the code under test. */
const PRELUDE = `set -eo pipefail; npm() { shift 4; "${process.execPath}" "${resolve(CLI)}" "$@"; }\n`;
/** What `export NAME=…` with three dots takes over from the answer before. */
const TAKEN_OVER: Record<string, string> = { TOKEN: 'access_token', REFRESH_TOKEN: 'refresh_token', KEY: 'key' };

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

interface Block {
  language: string;
  code: string;
}

const blocksOf = (text: string): Block[] =>
  [...text.matchAll(/^```(\w+)\n([^]*?)^```$/gm)].map(([, language = '', code = '']) => ({
    language,
    code,
  }));

/** Runs the commands of a document in their order; what a JSON block says must be what the command before it printed. */
async function follow(text: string): Promise<void> {
  const { id, secret } = await usher.client(receiver.url);
  const { PATH, HOME } = process.env;
  const env: NodeJS.ProcessEnv = { PATH, HOME, ...usher.settings };
  Object.assign(env, { AUTH_URL: usher.running.url, CLIENT_ID: id, CLIENT_SECRET: secret });
  let printed = '';
  for (const { language, code } of blocksOf(text)) {
    if (language === 'json') expect(masked(printed)).toEqual(masked(code));
    if (language !== 'sh') continue;
    const command = code.replace(/^export (\w+)=.*…\n/gm, (_, name: string) => {
      env[name] = String((JSON.parse(printed) as Record<string, unknown>)[TAKEN_OVER[name] ?? '']);
      return '';
    });
    printed = (await run('bash', ['-c', PRELUDE + command], { env })).stdout;
  }
}

describe('every command of the document is run, and answers what it says:', () => {
  test.each(['sandbox.md', 'errors.md', 'limits.md', 'changing-secrets.md'])('docs/%s', (name) =>
    follow(readFileSync(join('docs', name), 'utf8')),
  );

  test('README.md, from a token to a notification', async () => {
    const [, fiveMinutes = ''] =
      /^## Five minutes with curl\n([^]*?)^## /m.exec(readFileSync('README.md', 'utf8')) ?? [];
    const [, fromToken = ''] = fiveMinutes.split('get a token:');
    const here = fromToken
      .replaceAll('http://127.0.0.1:3000', usher.running.url)
      .replaceAll('http://127.0.0.1:4000/notify', receiver.url);
    await follow(here);
    const [newest] = await usher.webhooks.list({ limit: 1 });
    expect(here).not.toBe('');
    await usher.webhook(newest!.referenceId, 'SUCCESS');
  });
});
