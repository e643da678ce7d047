import { expect, test } from '@jest/globals';
import { getQueueToken } from '@nestjs/bullmq';
import type { INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { Queue } from 'bullmq';
import { CommandModule } from '../../src/cli/services.js';
import { ClientsService } from '../../src/clients/clients.service.js';
import { OrdersService } from '../../src/orders/orders.service.js';
import { serve } from '../../src/server/serve.js';
import { loadConfig } from '../../src/server/settings/settings.js';
import { WEBHOOK_QUEUE } from '../../src/webhooks/queue/delivery.queue.js';
import { WebhookService } from '../../src/webhooks/webhook.service.js';
import { createBackend } from '../support/backend.js';
import { COMPLETION, NEW_ORDER } from '../support/usher.js';

test('an application that closes right after a completion still adds the job', async () => {
  const backend = await createBackend();
  // There is no worker, so only the completion can add the job.
  const config = loadConfig({ PORT: '0', LOG_LEVEL: 'silent', USHER_ROLE: 'api', ...backend.settings });
  const app = await NestFactory.createApplicationContext(CommandModule.forConfig(config, 'with-queue'), {
    logger: false,
  });
  const { client } = await service(app, ClientsService).create('A client', 'http://127.0.0.1:4999/notify');
  const { key } = await service(app, OrdersService).create(client, NEW_ORDER);
  await service(app, OrdersService).complete(key, COMPLETION);
  await app.close();

  const again = await serve(config);
  const queue = again.app.get<Queue>(getQueueToken(WEBHOOK_QUEUE), { strict: false });
  await queue.waitUntilReady();
  const [webhook] = await service(again.app, WebhookService).find(key);
  expect(await queue.getJobState(webhook!.id)).toBe('waiting');
  await again.app.close();
  await backend.drop();
});

const service = <T>(app: INestApplicationContext, type: new (...injected: never[]) => T): T =>
  app.get<T>(type, { strict: false });
