import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { FastifyAdapter } from '@bull-board/fastify';
import { getQueueToken } from '@nestjs/bullmq';
import type { INestApplicationContext } from '@nestjs/common';
import type { Queue } from 'bullmq';
import type { FastifyInstance } from 'fastify';
import { SANDBOX_QUEUE } from '../../orders/sandbox/sandbox-operator.js';
import { PURGE_QUEUE } from '../../retention/purge.schedule.js';
import { WEBHOOK_QUEUE } from '../../webhooks/queue/delivery.queue.js';
import { RETRY_RUN_QUEUE } from '../../webhooks/queue/retry-run.js';
import { type Config, SERVER_CONFIG } from '../settings/settings.js';

const PATH = '/ops/queues';

/** Bull Board for all queues. Its own login option protects only the page, so operator-access.ts checks every request. */
export function mountDashboard(app: INestApplicationContext, server: FastifyInstance): void {
  const adapter = new FastifyAdapter();
  adapter.setBasePath(PATH);
  const { environment } = app.get<Config>(SERVER_CONFIG, { strict: false });
  const producers = [WEBHOOK_QUEUE, RETRY_RUN_QUEUE, PURGE_QUEUE];
  if (environment === 'sandbox') producers.push(SANDBOX_QUEUE);
  const queues = producers.map((name) => app.get<Queue>(getQueueToken(name), { strict: false }));
  createBullBoard({
    queues: queues.map((queue) => new BullMQAdapter(queue)),
    serverAdapter: adapter,
    options: { uiConfig: { boardTitle: 'Usher', miscLinks: [{ text: 'Deliveries today', url: '/ops' }] } },
  });
  server.register(adapter.registerPlugin() as Parameters<FastifyInstance['register']>[0], { prefix: PATH });
}
