import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import type { TestingModuleBuilder } from '@nestjs/testing';
import { type Config, loadConfig } from 'usher';

/** A configuration with its own embedded database. */
export async function temporary(settings: Record<string, string> = {}): Promise<{ config: Config; folder: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'order-service-'));
  return { config: loadConfig({ DATABASE_URL: `embedded:${folder}`, ...settings }), folder };
}

export async function start(builder: TestingModuleBuilder): Promise<NestFastifyApplication> {
  const application = (await builder.compile()).createNestApplication<NestFastifyApplication>(new FastifyAdapter(), {
    logger: false,
  });
  await application.listen(0, '127.0.0.1');
  return application;
}

export async function stop(application: NestFastifyApplication, folder: string): Promise<void> {
  await application.close();
  await rm(folder, { recursive: true });
}
