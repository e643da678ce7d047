import { spawn } from 'node:child_process';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, test } from '@jest/globals';
import { copyTemplate } from '../support/embedded-template.js';
import { BUILT, newFolder, SHORT_LIVED } from '../support/process.js';

/** Starts an application with workers, which asks for shutdown hooks after the start or not at all. */
const PROGRAM = `
  require('reflect-metadata');
  const { Module } = require('@nestjs/common');
  const { NestFactory } = require('@nestjs/core');
  const { UsherModule, WebhookModule } = require(process.env.USHER);
  (async () => {
    class App {}
    const options = { environment: 'sandbox', database: { url: process.env.DATABASE } };
    Module({ imports: [UsherModule.forRoot(options), WebhookModule] })(App);
    const application = await NestFactory.createApplicationContext(App, { logger: ['warn', 'error'] });
    if (process.env.HOOKS) application.enableShutdownHooks();
    // Usher's own timer was set before and has the same length, so it ends before this one.
    await new Promise((done) => setTimeout(done, 5_000));
    await application.close();
  })();
`;

/** The lines that it prints about shutdown hooks. */
async function warnings(settings: NodeJS.ProcessEnv): Promise<string[]> {
  const folder = newFolder();
  copyTemplate(folder);
  const env = {
    PATH: process.env.PATH,
    NODE_PATH: resolve('node_modules'),
    USHER: join(BUILT, 'src/index.js'),
    DATABASE: `embedded:${folder}`,
    ...settings,
  };
  const child = spawn(process.execPath, [...SHORT_LIVED, '--eval', PROGRAM], { env });
  const printed = (await Promise.all([text(child.stdout), text(child.stderr)])).join('');
  return printed.split('\n').filter((line) => line.includes('enableShutdownHooks'));
}

test('an application that delivers is warned once if it has no shutdown hooks', async () => {
  const [without, withHooks] = await Promise.all([warnings({}), warnings({ HOOKS: 'true' })]);
  expect(without).toEqual([expect.stringMatching(/WARN.*\[Usher\].*SIGTERM would end this process/)]);
  expect(withHooks).toEqual([]);
});
