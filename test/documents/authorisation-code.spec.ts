import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { PASSWORD, startWithIssuer, TestBrowser } from '../auth/authorize/support.js';
import { CLI } from '../support/process.js';
import type { TestUsher } from '../support/usher.js';

const run = promisify(execFile);

let usher: TestUsher;
beforeAll(async () => {
  usher = await startWithIssuer();
});
afterAll(() => usher.stop());

/** In a checkout `npm run -s usher -- …` is the built command; here it is the code under test. */
const PRELUDE = `set -eo pipefail; npm() { shift 4; "${process.execPath}" "${resolve(CLI)}" "$@"; }\n`;

test('the walk of docs/authorisation-code.md leads to an order of the member', async () => {
  const [, walk = ''] =
    /^## Try it\n([^]*?)^## The request/m.exec(readFileSync(join('docs', 'authorisation-code.md'), 'utf8')) ?? [];
  const blocks = [...walk.matchAll(/^```sh\n([^]*?)^```$/gm)].map(([, code = '']) => code);
  const { PATH, HOME } = process.env;
  const env: NodeJS.ProcessEnv = { PATH, HOME, ...usher.settings, AUTH_URL: usher.running.url };
  let exported = '';
  const follow = async (code = ''): Promise<string> => {
    const command = code.replace(/^export \w+=.*…\n/gm, '');
    exported += [...command.matchAll(/^export .*$/gm)].map(([line]) => `${line}\n`).join('');
    return (await run('bash', ['-c', `${PRELUDE}${exported}${command}`], { env })).stdout;
  };
  expect(blocks).toHaveLength(4);
  const [create, link, exchange, order] = blocks;
  const created = await follow(create);
  expect(created).toContain('amelie@cinema.example');
  for (const name of ['client_id', 'client_secret'])
    env[name.toUpperCase()] = new RegExp(`^${name} +(\\S+)$`, 'm').exec(created)?.[1];
  exported = `export VERIFIER=${'f'.repeat(64)}\n`;
  const url = (await follow(link?.replace(/^export VERIFIER=.*\n/m, ''))).trim();
  const browser = new TestBrowser(usher.running.url);
  const { location } = await browser.get(url);
  const signedIn = await browser.signIn('amelie@cinema.example', location, PASSWORD);
  env.CODE = (await browser.decide(signedIn.location)).searchParams.get('code') ?? '';
  env.TOKEN = (JSON.parse(await follow(exchange)) as { access_token: string }).access_token;
  expect(JSON.parse(await follow(order))).toMatchObject({ status: 'PENDING', totalAmount: 4200 });
});
