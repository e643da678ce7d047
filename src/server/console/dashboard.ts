import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { FastifyAdapter } from '@bull-board/fastify';
import { getQueueToken } from '@nestjs/bullmq';
import type { INestApplicationContext } from '@nestjs/common';
import type { Queue } from 'bullmq';
import type { FastifyInstance, FastifyPluginCallback } from 'fastify';
import { AuditLog } from '../../audit/audit.module.js';
import { SANDBOX_QUEUE } from '../../orders/sandbox/sandbox-operator.js';
import { PURGE_QUEUE } from '../../retention/purge.schedule.js';
import { WEBHOOK_QUEUE } from '../../webhooks/queue/delivery.queue.js';
import { RETRY_RUN_QUEUE } from '../../webhooks/queue/retry-run.js';
import { type Config, SERVER_CONFIG } from '../settings/settings.js';
import { DASHBOARD_PATH, guardDashboard } from './dashboard-guard.js';
import { DASHBOARD_POLICY, OPS_HEADERS } from './page.js';

/** Bull Board for all queues. Its own login option protects only the page, so operator-access.ts checks every request. */
export function mountDashboard(app: INestApplicationContext, server: FastifyInstance): void {
  const adapter = new FastifyAdapter();
  adapter.setBasePath(DASHBOARD_PATH);
  const { environment } = app.get<Config>(SERVER_CONFIG, { strict: false });
  const producers = [WEBHOOK_QUEUE, RETRY_RUN_QUEUE, PURGE_QUEUE];
  if (environment === 'sandbox') producers.push(SANDBOX_QUEUE);
  const queues = producers.map((name) => app.get<Queue>(getQueueToken(name), { strict: false }));
  createBullBoard({
    queues: queues.map((queue) => new BullMQAdapter(queue)),
    serverAdapter: adapter,
    options: { uiConfig: { boardTitle: 'Usher', miscLinks: [{ text: 'Deliveries today', url: '/ops' }] } },
  });
  const audit = app.get(AuditLog, { strict: false });
  server.register((scope, _, done) => {
    guardDashboard(scope, audit, producers);
    scope.addHook('onSend', async (_request, reply, payload) => {
      // @fastify/static has set other headers for its files.
      reply.headers({ ...OPS_HEADERS, 'Content-Security-Policy': DASHBOARD_POLICY });
      return typeof payload === 'string' ? withoutForeignStyles(payload) : payload;
    });
    scope.register(adapter.registerPlugin() as FastifyPluginCallback, { prefix: DASHBOARD_PATH });
    done();
  });
}

/** The page links a font of another host; without it the browser uses one of its own. */
const withoutForeignStyles = (page: string): string => page.replace(/<link [^>]*href="https?:[^>]*>/g, '');
