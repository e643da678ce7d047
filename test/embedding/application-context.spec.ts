import 'reflect-metadata';
import { randomUUID } from 'node:crypto';
import { ConsoleLogger, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { expect, test } from '@jest/globals';
import * as usher from '../../src/index.js';
import { createBackend } from '../support/backend.js';
import { TestReceiver } from '../support/receiver.js';
import { COMPLETION, NEW_ORDER } from '../support/usher.js';
import { optionsOn } from './host-parts.js';

/** Nest's own logger, whose lines are kept. */
class KeptLines extends ConsoleLogger {
  readonly lines: string[] = [];

  override printMessages(messages: unknown[], context = ''): void {
    for (const message of messages) this.lines.push(`[${context}] ${this.stringifyMessage(message, 'log') as string}`);
  }
}

test('every module starts without HTTP, and logs one-line sentences under contexts of its own', async () => {
  const [backend, receiver] = [await createBackend(), await TestReceiver.start()];
  const { UsherModule, SandboxWorkerModule, SandboxRoutesModule, ClientsModule, AccountModule } = usher;
  const routes = [
    usher.AuthModule,
    usher.AuthMetadataModule,
    usher.AuthorizationRoutesModule,
    usher.MemberRoutesModule,
  ];
  const more = [usher.OrdersModule, usher.OrderRoutesModule, usher.WebhookModule, usher.WebhookRoutesModule];
  @Module({
    imports: [
      UsherModule.forRoot(optionsOn(backend)),
      ...routes,
      ...more,
      ...[ClientsModule, AccountModule, usher.ClientRoutesModule, usher.CertificationRoutesModule],
      ...[SandboxRoutesModule, SandboxWorkerModule],
    ],
  })
  class ScriptModule {}
  const logger = new KeptLines({ colors: false });
  const application = await NestFactory.createApplicationContext(ScriptModule, { logger, abortOnError: false });
  application.enableShutdownHooks();
  const clients = application.get(usher.ClientsService, { strict: false });
  const orders = application.get(usher.OrdersService, { strict: false });
  const { client } = await clients.create(`Seeded ${randomUUID()}`, receiver.url);
  const { key } = await orders.create(client, NEW_ORDER);
  await orders.complete(key, COMPLETION);
  await receiver.waitFor(key);
  await application.close();
  receiver.close();
  await backend.drop();

  const own = logger.lines.filter((line) => line.startsWith('[Usher '));
  for (const part of [/event client\.created/, /event order\.completed, reference /, /attempt 1, outcome /])
    expect(own.filter((line) => part.test(line))).toHaveLength(1);
  const foreign = /^\[(NestFactory|InstanceLoader|RoutesResolver|RouterExplorer|NestApplication)/;
  expect(
    logger.lines.filter((line) => line.includes('\n') || !(line.startsWith('[Usher ') || foreign.test(line))),
  ).toEqual([]);
});
