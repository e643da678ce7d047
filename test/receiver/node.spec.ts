import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { signNotification } from 'usher-receiver';
import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { transformSync } from '@swc/core';
import { randomAlphanumeric } from '../../src/values/identifier.js';
import { codeBelow } from '../support/documentation.js';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/ports.js';
import { BUILT, newFolder } from '../support/process.js';
import { type TestClient, TestUsher } from '../support/usher.js';

const DOCUMENT = 'docs/receiving-node.md';
const README = 'packages/receiver/README.md';
const SWC = { ...(JSON.parse(readFileSync('.swcrc', 'utf8')) as object), swcrc: false, filename: 'receiver.ts' };

let usher: TestUsher;
let client: TestClient;
let child: ChildProcess | undefined;
beforeAll(async () => {
  usher = await TestUsher.shared();
  client = await usher.client();
});
afterEach(() => void child?.kill());

/** The project of an integrator, with our installed packages and with the receiver kit from its source. */
function project(code: string): string {
  const folder = newFolder();
  mkdirSync(join(folder, 'node_modules'));
  for (const name of ['express', 'fastify', '@nestjs', 'reflect-metadata'])
    symlinkSync(resolve('node_modules', name), join(folder, 'node_modules', name));
  const kit = join(folder, 'node_modules/usher-receiver');
  mkdirSync(kit);
  symlinkSync(join(BUILT, 'packages/receiver/dist'), join(kit, 'built'));
  writeFileSync(join(kit, 'package.json'), JSON.stringify({ type: 'module', exports: './built/index.js' }));
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  // JavaScript runs as pasted. Nest's example alone is TypeScript.
  writeFileSync(
    join(folder, 'receiver.mjs'),
    code.includes('@Controller') || code.includes('import { type') ? transformSync(code, SWC).code : code,
  );
  return folder;
}

/** Starts the receiver from a document and returns its Notify URL. */
async function start(document: string, heading: string): Promise<{ url: string; output: () => string }> {
  const port = await freePort();
  const cwd = project(codeBelow(document, heading).replace('4000', String(port)));
  let output = '';
  child = spawn(process.execPath, ['receiver.mjs'], { cwd, env: { CLIENT_SECRET: client.secret, NO_COLOR: '1' } });
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (text: Buffer) => (output += String(text)));
  const url = `http://127.0.0.1:${port}/notify`;
  await eventually(`the receiver of ${heading} listens`, () => fetch(url));
  return { url, output: () => output };
}

interface Forgery {
  age?: number;
  timestampSent?: string;
  bodySent?: string;
}

/** Sends a request that is signed as Usher signs, with optional changes. */
async function post(url: string, { age = 0, timestampSent, bodySent }: Forgery = {}): Promise<[number, string]> {
  const timestamp = String(Math.floor(Date.now() / 1_000) - age);
  const nonce = randomAlphanumeric(32);
  const body = '{"eventType":"NOTIFY_ORDER_COMPLETION","data":{"key":"K","title":"Amélie"}}';
  const headers = {
    'Content-Type': 'application/json',
    'X-Timestamp': timestampSent ?? timestamp,
    'X-Nonce-Str': nonce,
    'X-Signature': signNotification(client.secret, timestamp, nonce, Buffer.from(body)),
  };
  const response = await fetch(url, { method: 'POST', headers, body: bodySent ?? body });
  return [response.status, await response.text()];
}

describe.each([
  [DOCUMENT, 'Express'],
  [DOCUMENT, 'Fastify'],
  [DOCUMENT, 'Nest'],
  [DOCUMENT, 'Fetch API'],
  [README, 'Node'],
])('the receiver of %s, %s', (document, heading) => {
  test('accepts a genuine notification and refuses a changed body, a changed timestamp and an old notification', async () => {
    const { url, output } = await start(document, heading);
    const key = await client.completedOrder({ notifyUrl: url });
    await usher.webhook(key, 'SUCCESS');
    await eventually('it tells the order', () => output().includes(`order ${key} is COMPLETED`));
    expect((await post(url))[0]).toBe(200);
    const reformatted = '{ "eventType": "NOTIFY_ORDER_COMPLETION", "data": { "key": "K", "title": "Amélie" } }';
    const another = String(Math.floor(Date.now() / 1_000) - 1);
    for (const [forgery, reason] of [
      [{ bodySent: reformatted }, 'wrong-signature'],
      [{ timestampSent: another }, 'wrong-signature'],
      [{ age: 400 }, 'too-old'],
    ] as const) {
      const [status, text] = await post(url, forgery);
      expect([forgery, status]).toEqual([forgery, 401]);
      // A forger must not learn why.
      expect(text).not.toMatch(/signature|old|header/);
      await eventually('it logs why', () => output().includes(`refused: ${reason}`));
    }
    for (const stray of [{}, { body: 'plain text' }])
      expect([stray, (await fetch(url, { method: 'POST', ...stray })).status]).toEqual([stray, 401]);
  });
});

test(`the replay memory in ${DOCUMENT} accepts a request once`, () => {
  const timestamp = String(Math.floor(Date.now() / 1_000));
  const nonce = randomAlphanumeric(32);
  const signature = signNotification('secret', timestamp, nonce, Buffer.from('{}'));
  const given = {
    rawBody: '{}',
    headers: { 'X-Timestamp': timestamp, 'X-Nonce-Str': nonce, 'X-Signature': signature },
    secret: 'secret',
  };
  // The part of ioredis that the code below uses.
  const prelude = `
    const nonces = new Map();
    const redis = {
      set: async (name, value, ex, seconds, nx) =>
        ex === 'EX' && nx === 'NX' && seconds > 0 && !nonces.has(name) ? (nonces.set(name, value), 'OK') : null,
    };
    const { rawBody, headers, secret } = ${JSON.stringify(given)};
  `;
  const again = `
    console.log(nonces.size);
    await verifyOnce({ rawBody, headers, secret, memory }).catch(({ reason }) => console.log(reason));
  `;
  const cwd = project(prelude + codeBelow(DOCUMENT, 'Replays') + again);
  const stdout = execFileSync(process.execPath, ['receiver.mjs'], { cwd, encoding: 'utf8' });
  expect(stdout).toBe('1\nreplayed\n');
});
