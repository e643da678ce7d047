import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { FastifyAdapter } from '@bull-board/fastify';
import { getQueueToken } from '@nestjs/bullmq';
import type { INestApplicationContext } from '@nestjs/common';
import type { Queue } from 'bullmq';
import type { FastifyInstance, FastifyPluginCallback, FastifyReply, FastifyRequest } from 'fastify';
import { AuditLog } from '../../../audit/audit.module.js';
import { SANDBOX_QUEUE } from '../../../orders/sandbox/sandbox-operator.js';
import { QUEUE_CONNECTIONS, type QueueConnections } from '../../../queue/queue-connections.js';
import { PURGE_QUEUE } from '../../../retention/purge.schedule.js';
import { WEBHOOK_QUEUE } from '../../../webhooks/queue/delivery.queue.js';
import { RETRY_RUN_QUEUE } from '../../../webhooks/queue/retry-run.js';
import { type Config, SERVER_CONFIG } from '../../settings/settings.js';
import { readOnlyFor, withNavigation } from './board-frame.js';
import { DASHBOARD_PATH, guardDashboard } from './dashboard-guard.js';
import { OPS_HEADERS } from '../frame/frame.js';

/** Bull Board's page runs its own scripts, sets styles in its elements, and loads nothing from other hosts. */
const DASHBOARD_POLICY =
  "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; object-src 'none'; base-uri 'self'; " +
  "form-action 'self'; frame-ancestors 'none'";

/** Bull Board for all queues. Its own login option protects only the page, so operator-access.ts checks every request. */
export function mountDashboard(app: INestApplicationContext, server: FastifyInstance): void {
  const adapter = new FastifyAdapter();
  adapter.setBasePath(DASHBOARD_PATH);
  const { environment } = app.get<Config>(SERVER_CONFIG, { strict: false });
  const { redis } = app.get<QueueConnections>(QUEUE_CONNECTIONS, { strict: false });
  const producers = [WEBHOOK_QUEUE, RETRY_RUN_QUEUE, PURGE_QUEUE];
  if (environment === 'sandbox') producers.push(SANDBOX_QUEUE);
  const queues = producers.map((name) => app.get<Queue>(getQueueToken(name), { strict: false }));
  createBullBoard({
    queues: queues.map((queue) => new BullMQAdapter(queue)),
    serverAdapter: adapter,
    options: {
      uiConfig: {
        boardTitle: 'Queues',
        // On Postgres the workers share the connections of a pool, so BullMQ cannot find them by their names.
        showWorkers: redis !== null,
        hideRedisDetails: redis === null,
      },
    },
  });
  const audit = app.get(AuditLog, { strict: false });
  server.register((scope, _, done) => {
    guardDashboard(scope, audit, producers);
    scope.addHook('onSend', async (request, reply, payload) => {
      // @fastify/static has set other headers for its files.
      reply.headers({ ...OPS_HEADERS, 'Content-Security-Policy': DASHBOARD_POLICY });
      return typeof payload === 'string' ? framed(payload, request, reply) : payload;
    });
    scope.register(adapter.registerPlugin() as FastifyPluginCallback, { prefix: DASHBOARD_PATH });
    done();
  });
}

function framed(payload: string, request: FastifyRequest, reply: FastifyReply): string {
  const isPage = String(reply.getHeader('content-type')).startsWith('text/html');
  return isPage ? withNavigation(withoutForeignStyles(payload), request) : readOnlyFor(request, payload);
}

/** The page links a font of another host; without it the browser uses one of its own. */
const withoutForeignStyles = (page: string): string => page.replace(/<link [^>]*href="https?:[^>]*>/g, '');
