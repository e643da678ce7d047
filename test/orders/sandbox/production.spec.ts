import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { expect, test } from '@jest/globals';
import {
  AuthModule,
  CertificationRoutesModule,
  ClientsService,
  OrdersModule,
  OrdersService,
  SandboxRoutesModule,
  SandboxWorkerModule,
} from '../../../src/index.js';
import { loadConfig } from '../../../src/server/settings/settings.js';
import { issueAccessToken } from '../../../src/testing/index.js';
import { usherModuleFor } from '../../../src/usher.module.js';
import { createBackend } from '../../support/backend.js';
import { COMPLETION, NEW_ORDER } from '../../support/usher.js';

test('in production the routes of the sandbox answer 404, also where an application imports them', async () => {
  const backend = await createBackend();
  // The settings would refuse the embedded database in production.
  const options = { ...loadConfig({ ...backend.settings, LOG_LEVEL: 'silent' }), environment: 'production' as const };
  @Module({
    imports: [
      usherModuleFor(options),
      AuthModule,
      OrdersModule,
      SandboxRoutesModule,
      SandboxWorkerModule,
      CertificationRoutesModule,
    ],
  })
  class HostModule {}
  const host = await NestFactory.create(HostModule, { logger: false, abortOnError: false });
  await host.listen(0, '127.0.0.1');
  const orders = host.get(OrdersService, { strict: false });
  const { client } = await host
    .get(ClientsService, { strict: false })
    .create('Partner', 'https://partner.example/notify');
  const { key } = await orders.create(client, NEW_ORDER);
  const headers = {
    authorization: `Bearer ${await issueAccessToken(host, client.id)}`,
    'content-type': 'application/json',
  };
  const statusOf = async (path: string, body: object) => {
    const response = await fetch((await host.getUrl()) + path, { method: 'POST', headers, body: JSON.stringify(body) });
    return response.status;
  };

  expect(await statusOf(`/sandbox/movie-orders/${key}/complete`, COMPLETION)).toBe(404);
  expect(await statusOf(`/sandbox/movie-orders/${key}/complete`, { ...COMPLETION, delay: '1ms' })).toBe(404);
  expect(await statusOf('/sandbox/certifications', {})).toBe(404);
  expect(await orders.get(client, key)).toMatchObject({ status: 'PENDING' });
  await host.close();
  await backend.drop();
});
