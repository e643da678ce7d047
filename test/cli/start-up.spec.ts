import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { CLI, newFolder, SHORT_LIVED, usher, UsherProcess } from '../support/process.js';

/** A checkout with the entry of the command line, `dist/` if it is built, and no node_modules. */
function checkout(isBuilt: boolean): string {
  const folder = newFolder();
  for (const name of ['bin', 'package.json']) cpSync(name, join(folder, name), { recursive: true });
  mkdirSync(join(folder, 'dist'));
  if (isBuilt) symlinkSync(CLI, join(folder, 'dist/cli.js'));
  return folder;
}

/** Runs the entry as an installed `usher`, `npm run demo` and `npm start` do. */
function enter(
  folder: string,
  args: string[],
  preload = '',
): { status: number | null; stdout: string; stderr: string } {
  const options = preload === '' ? [] : ['--import', `data:text/javascript,${encodeURIComponent(preload)}`];
  return spawnSync(process.execPath, [...SHORT_LIVED, ...options, join(folder, 'bin/usher.mjs'), ...args], {
    encoding: 'utf8',
    env: {},
  });
}

const asNode = (version: string): string =>
  `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } })`;

describe('the entry of the command line', () => {
  test.each(['18.20.8', '20.18.3', '16.0.0'])('tells in one line that Node %s is too old', (version) => {
    const { status, stdout, stderr } = enter(checkout(true), ['--version'], asNode(version));
    const fault = `this is Node ${version}; install Node 20.19 or newer, from https://nodejs.org`;
    expect([status, stdout, stderr]).toEqual([1, '', `usher: ${fault}\n`]);
    expect(JSON.parse(enter(checkout(true), ['client', 'list', '--json'], asNode(version)).stderr)).toEqual({
      error: fault,
    });
  });

  test.each(['20.19.0', '22.0.0', '100.0.0'])('accepts Node %s', (version) => {
    expect(enter(checkout(true), ['--version'], asNode(version))).toMatchObject({ status: 0, stderr: '' });
  });

  test.each([['demo'], ['serve'], ['client']])('tells in one line that npm ci is missing: usher %s', (command) => {
    const folder = checkout(false);
    const { status, stderr } = enter(folder, [command]);
    expect([status, stderr]).toEqual([1, `usher: ${folder}/ is not installed yet; run "npm ci" there\n`]);
  });

  test('tells in one line which package is missing', () => {
    const folder = checkout(false);
    writeFileSync(join(folder, 'dist/cli.js'), "require('commander');");
    const { status, stderr } = enter(folder, ['--version']);
    expect(status).toBe(1);
    expect(stderr).toBe(
      'usher: the package commander is missing; run "npm ci" in a checkout, or "npm install" in your application\n',
    );
  });
});

describe('--json', () => {
  test.each([
    [['client', 'lst', '--json']],
    [['client', 'create', '--json']],
    [['webhook', 'list', '--json', '--limit', 'x']],
    [['listen', '--json']],
    [['client', 'list', '--json', '--jsno']],
    [['serve', '--json']],
    [['migrate', '--json']],
  ])('makes the error of usher %j one JSON document on standard error', async (args) => {
    const settings = { DATABASE_URL: 'mysql://root@127.0.0.1:1/x' };
    const [told, plain] = await Promise.all([
      usher(settings, args),
      usher(
        settings,
        args.filter((one) => one !== '--json'),
      ),
    ]);
    expect([told.code, told.stdout]).toEqual([plain.code, '']);
    expect(plain.stderr.startsWith('usher: ')).toBe(true);
    expect(JSON.parse(told.stderr)).toEqual({ error: plain.stderr.slice('usher: '.length, -1) });
  });
});

test('every default that the help shows can be typed as it is shown', async () => {
  const commands = [
    'listen',
    'webhook list',
    'audit list',
    'client create',
    'client rotate-secret',
    'purge',
    'member list',
  ];
  const defaults: string[] = [];
  for (const command of commands) {
    const { stdout } = await usher({}, [...command.split(' '), '--help']);
    for (const [, option = '', value = ''] of stdout
      .replace(/\n {3,}/g, ' ')
      .matchAll(/(--[\w-]+) <\w+>[^\n]*\(default: ([^,)]+)/g)) {
      defaults.push(`${command} ${option} ${value}`);
      const { code, stderr } = await usher({}, [...command.split(' '), option, value, '--help']);
      expect([option, value, code, stderr]).toEqual([option, value, 0, '']);
    }
  }
  expect(defaults).toContain('listen --delay 0s');
  expect(defaults).toContain('client rotate-secret --overlap 24h');
});

describe('a demo that a signal ends', () => {
  test.each([
    ['SIGINT', 130, /everything runs on this machine/],
    ['SIGINT', 130, /start Usher on the embedded database/],
    ['SIGTERM', 143, /issue a client/],
  ] as const)('by %s leaves no folder, and exits with %i', async (signal, code, moment) => {
    const folder = newFolder();
    const demo = new UsherProcess('cli.js', ['demo'], { TMPDIR: folder });
    await demo.printed(moment);
    expect(await demo.end(signal)).toMatchObject({ code, stderr: '' });
    expect(readdirSync(folder)).toEqual([]);
  });
});
