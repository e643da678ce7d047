import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { build } from 'esbuild';
import { type Backend, createBackend } from '../support/backend.js';
import { BUILT, UsherProcess } from '../support/process.js';
import { optionsOn } from './host-parts.js';

const PROGRAM = `
  require('reflect-metadata');
  const { NestFactory } = require('@nestjs/core');
  const { UsherModule } = require('./src/index.js');
  const usher = UsherModule.forRoot(JSON.parse(process.env.OPTIONS));
  NestFactory.createApplicationContext(usher, { logger: ['error'], abortOnError: false })
    .then((application) => application.close())
    .then(() => console.log('closed'));
`;
/** Packages that are optional, or have files beside their modules. */
const EXTERNAL = ['@nestjs/*', '@electric-sql/pglite', '@node-rs/argon2', 'pg-native'];

test('a host starts from a bundle in which all names of classes are short', async () => {
  const backend = await createBackend();
  expect(await started(backend, [...EXTERNAL, 'bullmq'])).toEqual({ code: 0, stdout: 'closed\n', stderr: '' });
  await backend.drop();
});

test('a host whose @nestjs/bullmq has another copy of bullmq does not wait for a Redis', async () => {
  const backend = await createBackend();
  const { code, stderr } = await started(backend, EXTERNAL);
  const isOnRedis = 'QUEUE_URL' in backend.settings;
  expect([code, stderr]).toEqual(
    isOnRedis ? [0, ''] : [1, expect.stringContaining('two copies of bullmq; install one')],
  );
  await backend.drop();
});

/** Starts the program in a bundle without the packages `external`, and waits until it has ended. */
async function started(backend: Backend, external: string[]) {
  const outfile = join(BUILT, `bundled-${process.pid}.cjs`);
  await build({
    stdin: { contents: PROGRAM, resolveDir: BUILT },
    outfile,
    bundle: true,
    minify: true,
    platform: 'node',
    external,
    logLevel: 'error',
  });
  const host = new UsherProcess(outfile, [], { OPTIONS: JSON.stringify(optionsOn(backend)) });
  const ended = await host.ended;
  rmSync(outfile);
  return ended;
}
