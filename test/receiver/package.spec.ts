import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { beforeAll, expect, test } from '@jest/globals';
import { newFolder } from '../support/process.js';

/** Prints the signature that the kit computes, and what it says about a genuine and a changed notification. */
const PROGRAM = `
  const secret = '8Qm3vT1xKpZ0aYd7LrNf5sWc2BhEuJg9RtVx4MzQiXo';
  const nonce = 'aZ09bY18cX27dW36eV45fU54gT63hS72';
  const signature = 'e5d3871cef64ad390e83c64d1b46379dbce8d49172fed3255e835b2b60531d79';
  const headers = { 'X-Timestamp': '1767225600', 'X-Nonce-Str': nonce, 'X-Signature': signature };
  const options = { rawBody: '{}', headers, secret, now: 1_767_225_600_000 };
  const genuine = kit.verifyNotification(options);
  const changed = kit.diagnose({ ...options, rawBody: '{"a":1}' })?.reason;
  const signed = kit.signNotification(secret, '1767225600', nonce, new Uint8Array([123, 125]));
  console.log(JSON.stringify({ signed: signed === signature, genuine, changed }));
`;
const IMPORT = "import * as kit from 'usher-receiver';";
const REQUIRE = "const kit = require('usher-receiver');";

let folder: string;
/** The project of an integrator with the built kit and no other package. */
beforeAll(() => {
  folder = newFolder();
  const installed = join(folder, 'node_modules/usher-receiver');
  mkdirSync(installed, { recursive: true });
  copyFileSync('packages/receiver/package.json', join(installed, 'package.json'));
  execFileSync(process.execPath, [resolve('packages/receiver/build.mjs'), join(installed, 'dist')]);
});

test.each([
  ['import', 'program.mjs', IMPORT],
  ['require', 'program.cjs', REQUIRE],
])('the built package verifies the test vector after %s', (_, file, line) => {
  writeFileSync(join(folder, file), line + PROGRAM);
  // As in Node before 20.19, where `require` of an ES module fails.
  const args = process.allowedNodeEnvironmentFlags.has('--no-experimental-require-module')
    ? ['--no-experimental-require-module', file]
    : [file];
  const stdout = execFileSync(process.execPath, args, { cwd: folder, encoding: 'utf8' });
  expect(JSON.parse(stdout)).toEqual({ signed: true, genuine: {}, changed: 'wrong-signature' });
});

test('the types hold for an ES module and for CommonJS, without the types of Node', () => {
  const use = 'const console: { log(text: string): void } = { log: () => undefined };';
  writeFileSync(join(folder, 'typed.mts'), IMPORT + use + PROGRAM);
  writeFileSync(join(folder, 'typed.cts'), "import kit = require('usher-receiver');" + use + PROGRAM);
  const options = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2022', '--lib', 'es2022'];
  const args = [resolve('node_modules/typescript/bin/tsc'), ...options, 'typed.mts', 'typed.cts'];
  execFileSync(process.execPath, args, { cwd: folder, encoding: 'utf8' });
});

test('the export nest-usher/receiver is the built package', () => {
  interface Manifest {
    exports: Record<string, unknown>;
    version: string;
  }
  const manifest = (path: string): Manifest => JSON.parse(readFileSync(path, 'utf8')) as Manifest;
  const [usher, kit] = [manifest('package.json'), manifest('packages/receiver/package.json')];
  const inKit = JSON.stringify(kit.exports['.']).replaceAll('./dist/', './packages/receiver/dist/');
  expect(usher.exports['./receiver']).toEqual(JSON.parse(inKit));
  expect(kit.version).toBe(usher.version);
  expect(kit).not.toHaveProperty('dependencies');
});
