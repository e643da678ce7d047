import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { INestApplication } from '@nestjs/common';
import { Test, type TestingModuleBuilder } from '@nestjs/testing';
import { AppModule } from '../src/app.module';
import { configureApp } from '../src/configure-app';

/** Starts the bundle in a process of its own. With a builder it starts that module here. */
export async function startApp(builder?: TestingModuleBuilder): Promise<INestApplication> {
  const bundle = builder ? null : await startBundle();
  process.env.USHER_DELIVER = 'false';
  const module = await (builder ?? Test.createTestingModule({ imports: [AppModule] })).compile();
  const app = configureApp(module.createNestApplication());
  if (!bundle) return app.listen(0, '127.0.0.1').then(() => app);
  await app.init();
  const close = async () => {
    await app.close();
    expect(await bundle.end()).toBe('SIGTERM');
  };
  return { get: app.get.bind(app), getUrl: async () => bundle.url, close } as unknown as INestApplication;
}

async function startBundle() {
  const env = { ...process.env, PORT: '0', NO_COLOR: '1' };
  const child = spawn(process.execPath, ['dist/main.js'], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const end = async (): Promise<string> => {
    child.kill();
    const [, signal] = await once(child, 'exit');
    return signal;
  };
  let printed = '';
  for await (const line of createInterface(child.stdout)) {
    printed += `${line}\n`;
    const url = /Listening at (\S+)/.exec(line)?.[1];
    if (url) return { url, end };
  }
  throw new Error(`the bundle did not start:\n${printed}`);
}
