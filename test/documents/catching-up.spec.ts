import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { answer, TestReceiver } from '../support/receiver.js';
import { ONE_ATTEMPT, TestUsher } from '../support/usher.js';

const run = promisify(execFile);
/** In place of docs/try.sh, which makes a client of its own. */
const TOKEN = `TOKEN=$(curl -s -u "$CLIENT_ID:$CLIENT_SECRET" -d grant_type=client_credentials "$AUTH_URL/auth/token" |
  sed 's/.*"access_token":"\\([^"]*\\)".*/\\1/')`;
/** Between the outputs of two blocks. */
const MARK = '--- end of block ---';

let usher: TestUsher;
let receiver: TestReceiver;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'usher-orders-'));
  usher = await TestUsher.start(ONE_ATTEMPT);
  receiver = await TestReceiver.start();
});
afterAll(async () => {
  await usher.stop();
  receiver.close();
  rmSync(folder, { recursive: true });
});

/** Names instead of values: a document and an answer agree in these. */
function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shapeOf);
  if (value === null || typeof value !== 'object') return typeof value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, shapeOf(member)]));
}

test('docs/catching-up.md: its commands in one shell answer what it says, and its digest is that of the totals', async () => {
  const client = await usher.client(receiver.url);
  const keys = [await client.completedOrder(), await client.completedOrder()];
  for (const key of keys) await usher.webhook(key, 'SUCCESS');
  receiver.behaviour = answer(500);
  keys.push(await client.completedOrder());
  await usher.webhook(keys[2]!, 'FAILED');
  receiver.behaviour = answer(200);
  await client.order();

  const text = readFileSync('docs/catching-up.md', 'utf8');
  const blocks = [...text.matchAll(/^```(\w+)\n([^]*?)^```$/gm)].map(([, language, code]) => ({ language, code }));
  const commands = blocks
    .filter(({ language }) => language === 'sh')
    .map(({ code }) => `${code}\necho; echo '${MARK}'`);
  // A reader needs a moment before the progress is asked for; the test waits until it is finished.
  const script = commands
    .join('\n')
    .replace('. docs/try.sh', () => TOKEN)
    .replace(/^usher_get "\/webhook-resends.*$/m, (line: string) => {
      const poll = `until ${line} | grep -q FINISHED; do sleep 0.1; done`;
      return `${poll}\n${line}`;
    });
  const { PATH, HOME } = process.env;
  const env = { PATH, HOME, AUTH_URL: usher.running.url, CLIENT_ID: client.id, CLIENT_SECRET: client.secret };
  const { stdout } = await run('bash', ['-c', `set -eu\n${script}`], { cwd: folder, env });
  const outputs = stdout.split(MARK).map((output) => output.trim());
  const documented = blocks
    .flatMap(({ language, code = '' }, index) => (language === 'text' ? [{ code, index }] : []))
    .map(({ code, index }) => ({
      code,
      output: outputs[blocks.slice(0, index).filter(({ language }) => language === 'sh').length - 1] ?? '',
    }));
  expect(documented).toHaveLength(4);
  for (const { code, output } of documented) expect(shapeOf(JSON.parse(output))).toEqual(shapeOf(JSON.parse(code)));
  const [, totals, , resend] = documented.map(({ output }) => JSON.parse(output) as Record<string, unknown>);
  expect(totals?.currencies).toEqual([
    { currencyCode: 'MYR', count: 3, payableAmount: 12_900, keysDigest: expect.any(String) },
  ]);
  const [{ keysDigest } = { keysDigest: '' }] = totals?.currencies as { keysDigest: string }[];
  expect(outputs).toContain(keysDigest);
  expect(resend).toMatchObject({ state: 'FINISHED', selected: 1, resent: 1, refused: 0 });
  await usher.webhook(keys[2]!, 'SUCCESS');
});
