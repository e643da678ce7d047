import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { build } from 'esbuild';
import { createBackend } from '../support/backend.js';
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
  const outfile = join(BUILT, `bundled-${process.pid}.cjs`);
  await build({
    stdin: { contents: PROGRAM, resolveDir: BUILT },
    outfile,
    bundle: true,
    minify: true,
    platform: 'node',
    external: EXTERNAL,
    logLevel: 'error',
  });
  const host = new UsherProcess(outfile, [], { OPTIONS: JSON.stringify(optionsOn(backend)) });
  expect(await host.ended).toEqual({ code: 0, stdout: 'closed\n', stderr: '' });
  rmSync(outfile);
  await backend.drop();
});
