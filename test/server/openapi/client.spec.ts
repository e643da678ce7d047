import { execFile } from 'node:child_process';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, test } from '@jest/globals';
import { orderIdOf } from '../../../src/values/identifier.js';
import { newFolder } from '../../support/process.js';
import { TestUsher } from '../../support/usher.js';

const run = promisify(execFile);
const tool = (path: string): string => resolve('node_modules', path);

let usher: TestUsher;
beforeAll(async () => {
  usher = await TestUsher.shared();
});

/** A program that uses the generated client, as an integrator would write it. */
const PROGRAM = `
import { client } from './client/client.gen.js';
import { createMovieOrder, getMovieOrder, requestToken } from './client/index.js';

const [baseUrl = '', id, secret] = process.argv.slice(2);
client.setConfig({ baseUrl, throwOnError: true });
const tokens = await requestToken({
  body: { grant_type: 'client_credentials' },
  auth: id + ':' + secret,
  throwOnError: true,
});
const auth: string = tokens.data.access_token;
const created = await createMovieOrder({
  body: { currencyCode: 'MYR', totalAmount: 4200, bookingAmount: 200, payableAmount: 4300 },
  headers: { 'Idempotency-Key': 'one' },
  auth,
  throwOnError: true,
});
const order = await getMovieOrder({ path: { key: created.data.key }, auth, throwOnError: true });
const refused = await getMovieOrder({ path: { key: 'none' }, auth, throwOnError: false });
const title: string | undefined = refused.error?.title;
console.log(JSON.stringify({ order: order.data, title }));
`;

test('a client generated from the document by a public generator gets a token and an order', async () => {
  const folder = newFolder();
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'));
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  writeFileSync(join(folder, 'tsconfig.json'), TSCONFIG);
  writeFileSync(join(folder, 'program.ts'), PROGRAM);
  const document = `${usher.running.url}/docs/openapi.json`;
  const node = (...args: string[]) => run(process.execPath, args, { cwd: folder });
  await node(tool('@hey-api/openapi-ts/bin/run.js'), '--input', document, '--output', 'client', '--no-log-file');
  await node(tool('typescript/bin/tsc'), '--project', '.');
  const { id, secret } = await usher.client('http://127.0.0.1:4000/notify');
  const { stdout } = await node('built/program.js', usher.running.url, id, secret);
  const { order, title } = JSON.parse(stdout) as { order: { key: string }; title: string };
  expect(order).toMatchObject({ status: 'PENDING', totalAmount: 4200 });
  expect(orderIdOf(order.key)).not.toBeNull();
  expect(title).toBe('Not Found');
});

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
