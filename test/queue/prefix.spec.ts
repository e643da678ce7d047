import { expect, test } from '@jest/globals';
import { getQueueToken } from '@nestjs/bullmq';
import type { Queue } from 'bullmq';
import { migrate } from '../../src/server/migrate.js';
import { serve } from '../../src/server/serve.js';
import { loadConfig } from '../../src/server/settings/settings.js';
import { WEBHOOK_QUEUE } from '../../src/webhooks/queue/delivery.queue.js';
import { createBackend } from '../support/backend.js';

test('a queue whose prefix has capitals takes jobs', async () => {
  const backend = await createBackend();
  const QUEUE_PREFIX = `Cinema-${backend.settings.QUEUE_PREFIX ?? 'One'}`;
  const config = loadConfig({ PORT: '0', LOG_LEVEL: 'silent', USHER_ROLE: 'api', ...backend.settings, QUEUE_PREFIX });
  await migrate(config);
  const { app } = await serve(config);
  const queue = app.get<Queue>(getQueueToken(WEBHOOK_QUEUE), { strict: false });
  await queue.waitUntilReady();
  await queue.add('deliver', {});
  expect(await queue.getWaitingCount()).toBe(1);
  await app.close();
  await backend.drop();
});
