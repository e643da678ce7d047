import { spawn } from 'node:child_process';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, test } from '@jest/globals';
import { copyTemplate } from '../support/embedded-template.js';
import { BUILT, newFolder, SHORT_LIVED } from '../support/process.js';

/** Starts an application with workers twice: without shutdown hooks, and with hooks that it asks for after the start. */
const PROGRAM = `
  require('reflect-metadata');
  const { Module } = require('@nestjs/common');
  const { NestFactory } = require('@nestjs/core');
  const { UsherModule, WebhookModule } = require(process.env.USHER);
  async function start() {
    class App {}
    const options = { environment: 'sandbox', database: { url: process.env.DATABASE } };
    Module({ imports: [UsherModule.forRoot(options), WebhookModule] })(App);
    return NestFactory.createApplicationContext(App, { logger: ['warn', 'error'] });
  }
  // Usher's own timer was set before and has the same length, so it ends before this one.
  const warned = () => new Promise((done) => setTimeout(done, 1_000));
  (async () => {
    const first = await start();
    await warned();
    await first.close();
    const second = await start();
    second.enableShutdownHooks();
    await warned();
    await second.close();
  })();
`;

test('an application that delivers without shutdown hooks is warned once', async () => {
  const folder = newFolder();
  copyTemplate(folder);
  const env = {
    PATH: process.env.PATH,
    NODE_PATH: resolve('node_modules'),
    USHER: join(BUILT, 'src/index.js'),
    DATABASE: `embedded:${folder}`,
  };
  const child = spawn(process.execPath, [...SHORT_LIVED, '--eval', PROGRAM], { env });
  const printed = (await Promise.all([text(child.stdout), text(child.stderr)])).join('');
  const lines = printed.split('\n').filter((line) => line.includes('enableShutdownHooks'));
  expect(lines).toHaveLength(1);
  expect(lines[0]).toMatch(/WARN.*\[Usher\].*SIGTERM would end this process/);
});
