import { execFileSync, spawn } from 'node:child_process';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { verifyNotification } from 'usher-receiver';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.js';
import { refusingUrl } from '../support/ports.js';
import { BUILT, newFolder } from '../support/process.js';
import { TestReceiver } from '../support/receiver.js';
import { TestUsher } from '../support/usher.js';

const { version } = JSON.parse(readFileSync('packages/receiver/package.json', 'utf8')) as { version: string };
const TARBALL = `usher-receiver-${version}.tgz`;
/** Nothing but the server can be reached, and nothing is in the cache. */
const offline = () => ({
  npm_config_registry: 'http://127.0.0.1:1',
  npm_config_fetch_retries: '0',
  npm_config_update_notifier: 'false',
  npm_config_cache: newFolder(),
});

let usher: TestUsher;
let receiver: TestReceiver;
beforeAll(async () => {
  usher = await TestUsher.shared();
  receiver = await TestReceiver.start();
});
afterAll(() => void receiver.close());

test('npx runs the commands from the address of the service alone, and listen asks that service', async () => {
  const client = await usher.client(await refusingUrl());
  const key = await client.completedOrder();
  const settings = { ...offline(), CLIENT_ID: client.id, CLIENT_SECRET: client.secret };
  const args = ['-y', `${usher.running.url}/${TARBALL}`, 'listen', '--forward-to', receiver.url];
  const { PATH = '', HOME = '' } = process.env;
  // A group of its own, as a terminal makes it: Ctrl-C reaches what npx runs, too.
  const listen = spawn('npx', args, { env: { PATH, HOME, ...settings }, cwd: newFolder(), detached: true });
  let stdout = '';
  listen.stdout.on('data', (text) => void (stdout += String(text)));
  try {
    const printed = new RegExp(`signature valid  NOTIFY_ORDER_COMPLETION  ${key} .* forwarded: 200\n`);
    await eventually('it forwards the notification', () => printed.test(stdout));
  } finally {
    process.kill(-listen.pid!, 'SIGINT');
  }
  const [{ rawBody, headers } = { rawBody: '', headers: {} }] = receiver.of(key);
  expect(verifyNotification({ rawBody, headers, secret: client.secret }).data.key).toBe(key);
});

test('the tarball has the name, the type and the files that npm pack gives it', async () => {
  const response = await fetch(`${usher.running.url}/${TARBALL}`);
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/gzip']);
  const [packed, copy] = [join(newFolder(), TARBALL), newFolder()];
  writeFileSync(packed, Buffer.from(await response.arrayBuffer()));
  cpSync(join(BUILT, 'packages/receiver'), copy, { recursive: true });
  const npmPack = ['pack', '--dry-run', '--json', '--ignore-scripts'];
  const [expected] = JSON.parse(execFileSync('npm', npmPack, { cwd: copy, encoding: 'utf8' })) as [
    { filename: string; files: { path: string; size: number }[] },
  ];
  expect(expected.filename).toBe(TARBALL);
  const listed = execFileSync('tar', ['-tvzf', packed], { encoding: 'utf8' }).trim().split('\n');
  const files = listed.map((line) => line.split(/\s+/)).map(([, , size, , , path = '']) => `${path} ${size}`);
  const isSame = (path: string): boolean => path !== 'package.json';
  expect(files.filter((line) => !line.startsWith('package/package.json ')).sort()).toEqual(
    expected.files
      .filter(({ path }) => isSame(path))
      .map(({ path, size }) => `package/${path} ${size}`)
      .sort(),
  );
});
