import { execFile, spawnSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { FetchingJSONSchemaStore, InputData, JSONSchemaInput, quicktype } from 'quicktype-core';
import type { OpenApiDocument } from '../../../src/server/openapi/document.js';
import { newFolder } from '../../support/process.js';
import { answer, TestReceiver } from '../../support/receiver.js';
import { TestUsher } from '../../support/usher.js';
import { FETCH_PROGRAM, HEY_API_PROGRAM, PYTHON_PROGRAM } from './client-programs.js';

const run = promisify(execFile);
const tool = (path: string): string => resolve('node_modules', path);

let usher: TestUsher;
let receiver: TestReceiver;
beforeAll(async () => {
  usher = await TestUsher.shared();
  receiver = await TestReceiver.start();
  receiver.behaviour = answer(500);
});
afterAll(() => receiver.close());

const documentUrl = (): string => `${usher.running.url}/docs/openapi.json`;

/** Runs a program with a client of its own, and checks what it tells: the same story in each language. */
async function expectStory(command: string, args: string[], folder: string): Promise<void> {
  const { id, secret } = await usher.client(receiver.url);
  const { stdout } = await run(command, [...args, usher.running.url, id, secret], { cwd: folder });
  expect(JSON.parse(stdout)).toEqual({
    status: 'COMPLETED',
    attemptCounts: [expect.any(Number)],
    next: null,
    undelivered: [expect.stringContaining('NOTIFY_ORDER_COMPLETION')],
    hasMore: false,
    title: 'Not Found',
  });
}

/** Compiles a program that uses what `generate` has put into its folder, as an integrator would, and runs it. */
async function expectTypeScriptStory(program: string, ...generate: string[]): Promise<void> {
  const folder = newFolder();
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'));
  mkdirSync(join(folder, 'client'));
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  writeFileSync(join(folder, 'tsconfig.json'), TSCONFIG);
  writeFileSync(join(folder, 'program.ts'), program);
  await run(process.execPath, generate, { cwd: folder });
  await run(process.execPath, [tool('typescript/bin/tsc'), '--project', '.'], { cwd: folder });
  await expectStory(process.execPath, ['built/program.js'], folder);
}

test('a client of @hey-api/openapi-ts gets a token, orders, and reads the undelivered notifications', async () => {
  const generator = tool('@hey-api/openapi-ts/bin/run.js');
  await expectTypeScriptStory(
    HEY_API_PROGRAM,
    generator,
    ...['--input', documentUrl(), '--output', 'client', '--no-log-file'],
  );
});

test('a client with the types of openapi-typescript gets a token, orders, and reads the undelivered notifications', async () => {
  const generator = tool('openapi-typescript/bin/cli.js');
  await expectTypeScriptStory(FETCH_PROGRAM, generator, documentUrl(), '--output', 'client/usher.ts');
});

/**
 * npm has no generator of a whole client in another language that works offline: openapi-generator-cli needs Java and a
 * download, openapi-generator-plus makes Java clients for libraries of Maven, TypeSpec and AutoRest need packages of PyPI.
 */
const hasPython = spawnSync('python3', ['--version']).status === 0;
(hasPython ? test : test.skip)(
  'a client with the Python types of quicktype goes from the token to what was not delivered',
  async () => {
    const folder = newFolder();
    writeFileSync(join(folder, 'usher_types.py'), await pythonTypes());
    writeFileSync(join(folder, 'program.py'), PYTHON_PROGRAM);
    await expectStory('python3', ['program.py'], folder);
  },
);

/** Classes of the answers that check the type of every member when they read one. */
async function pythonTypes(): Promise<string> {
  const { components } = (await (await fetch(documentUrl())).json()) as OpenApiDocument;
  const input = new JSONSchemaInput(new FetchingJSONSchemaStore());
  for (const name of ['TokenResponse', 'MovieOrder', 'WebhookPage', 'UndeliveredPage', 'Problem'])
    await input.addSource({
      name,
      // Python's own library has no parser for the format of times that quicktype would use.
      schema: JSON.stringify({ $ref: `#/components/schemas/${name}`, components }, (key, value: unknown) =>
        key === 'format' ? undefined : value,
      ),
    });
  const inputData = new InputData();
  inputData.addInput(input);
  return (await quicktype({ inputData, lang: 'python' })).lines.join('\n');
}

const TSCONFIG = JSON.stringify({
  compilerOptions: {
    module: 'nodenext',
    target: 'es2023',
    lib: ['es2023', 'dom', 'dom.iterable'],
    types: ['node'],
    strict: true,
    skipLibCheck: true,
    outDir: 'built',
    rootDir: '.',
  },
  files: ['program.ts'],
});
