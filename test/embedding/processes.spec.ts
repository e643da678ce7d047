import 'reflect-metadata';
import { hostname } from 'node:os';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { getDataSourceToken } from '@nestjs/typeorm';
import { expect, test } from '@jest/globals';
import type { DataSource } from 'typeorm';
import { ProcessList } from '../../src/clients/keys/processes.js';
import { ServiceProcess } from '../../src/database/service-process.entity.js';
import { UsherModule } from '../../src/index.js';
import { createBackend } from '../support/backend.js';
import { optionsOn } from './host-parts.js';

test('an application is listed with its master keys, so that no rotation shuts it out, until it stops', async () => {
  const backend = await createBackend();
  const masterKeys = ['first', 'second'].map((id) => `${id}:${Buffer.alloc(32, id).toString('base64')}`).join(',');
  @Module({ imports: [UsherModule.forRoot({ ...optionsOn(backend), masterKeys, deliver: false })] })
  class HostModule {}
  const application = await NestFactory.createApplicationContext(HostModule, { logger: false, abortOnError: false });
  const { manager } = application.get<DataSource>(getDataSourceToken('usher'), { strict: false });
  const own = { name: `${hostname()}:${process.pid}`, role: 'api', keyIds: ['first', 'second'] };
  expect(await manager.find(ServiceProcess)).toMatchObject([own]);
  const processes = application.get(ProcessList, { strict: false });
  await processes.beforeApplicationShutdown();
  expect(await manager.count(ServiceProcess)).toBe(0);
  // While it writes its row.
  await Promise.all([processes.onApplicationBootstrap(), processes.beforeApplicationShutdown()]);
  expect(await manager.count(ServiceProcess)).toBe(0);
  await application.close();
  await backend.drop();
});
