import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { FastifyAdapter } from '@bull-board/fastify';
import type { INestApplicationContext } from '@nestjs/common';
import type { FastifyInstance, FastifyPluginCallback, FastifyReply, FastifyRequest } from 'fastify';
import type { AuditAction } from '../../../audit/audit-event.entity.js';
import { AuditLog } from '../../../audit/audit.module.js';
import { sendProblem } from '../../../http/error-response.js';
import { actorOf } from '../../../http/exchange.js';
import { html } from '../../../http/html.js';
import { viewerOf } from '../../../http/pages/form.js';
import { forbidden } from '../../../http/problem.js';
import { QUEUE_CONNECTIONS, type QueueConnections } from '../../../queue/queue-connections.js';
import { Backlog } from '../../health/backlog.js';
import { SAFE_METHODS } from '../access/browser-sessions.js';
import { OPS_SITE, OPS_HEADERS, sendFramed } from '../frame/frame.js';
import { acceptsPage } from '../../../http/pages/page.js';
import { notice } from '../../../http/pages/parts.js';

const DASHBOARD_PATH = '/ops/queues';

/** Bull Board's page runs its own scripts, sets styles in its elements, and loads nothing from other hosts. */
const DASHBOARD_POLICY =
  "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; object-src 'none'; base-uri 'self'; " +
  "form-action 'self'; frame-ancestors 'self'";

/** Bull Board for all queues. Its own login option protects only the page, so operator-access.ts checks every request. */
export function mountDashboard(app: INestApplicationContext, server: FastifyInstance) {
  const adapter = new FastifyAdapter();
  adapter.setBasePath(DASHBOARD_PATH);
  const { redis } = app.get<QueueConnections>(QUEUE_CONNECTIONS);
  const queues = app.get(Backlog).all;
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
  server.register((scope, _, done) => {
    guardDashboard(
      scope,
      app.get(AuditLog),
      queues.map(({ name }) => name),
    );
    scope.addHook('onSend', async (request, reply, payload) => {
      if (isOutside(request)) return payload;
      // @fastify/static has set other headers for its files.
      void reply.headers({ ...OPS_HEADERS, 'Content-Security-Policy': DASHBOARD_POLICY });
      if (typeof payload !== 'string') return payload;
      const type = String(reply.getHeader('content-type'));
      if (type.startsWith('text/html'))
        // The page links a font of another host; without it the browser uses one of its own.
        return payload.replace(/<link [^>]*href="https?:[^>]*>/g, '');
      return viewerOf(request) && type.includes('problem') ? readable(payload) : payload;
    });
    scope.register(adapter.registerPlugin() as FastifyPluginCallback, { prefix: DASHBOARD_PATH });
    done();
  });
}

/** Whether a browser opens a page of Bull Board outside the console. It then gets the console's page, which embeds it. */
const isOutside = (request: FastifyRequest) =>
  acceptsPage(request) &&
  !/[?&]board\b|\/(api|static)\//.test(request.url) &&
  request.headers['sec-fetch-dest'] !== 'iframe';

function sendFrame(request: FastifyRequest, reply: FastifyReply) {
  const address = `${request.url}${request.url.includes('?') ? '&' : '?'}board`;
  const body = html`${!viewerOf(request)?.mayChange && notice('warning', VIEWER)}
    <iframe class="board" title="Bull Board" src="${address}"></iframe>`;
  sendFramed(OPS_SITE, request, reply, { title: 'Queues', section: 'queues', body });
}

const VIEWER = 'Your role is viewer: you can read the queues here, but every change is refused.';

/** Adds the members that Bull Board shows. */
function readable(problem: string) {
  const members = JSON.parse(problem) as Record<string, unknown>;
  return JSON.stringify({ ...members, error: members.title, message: members.detail });
}

/**
 * The writing routes of Bull Board that are allowed, and how the audit names them. All others are refused, also those
 * of a later version: they limit a queue, add jobs or schedules, or undo a pause without an operator noticing it.
 */
const PAUSES: Record<string, AuditAction> = {
  'PUT /pause': 'queue.paused',
  'PUT /resume': 'queue.resumed',
  'PUT /:queueName/pause': 'queue.paused',
  'PUT /:queueName/resume': 'queue.resumed',
};
const CHANGES = [
  'PUT /:queueName/retry/:queueStatus',
  'PUT /:queueName/promote',
  'PUT /:queueName/clean/:queueStatus',
  'PUT /:queueName/empty',
  'PUT /:queueName/:jobId/retry',
  'PUT /:queueName/:jobId/promote',
  'PUT /:queueName/:jobId/clean',
  'PATCH /:queueName/:jobId/update-data',
  'PATCH /:queueName/:jobId/delay',
  'PATCH /:queueName/:jobId/priority',
];

/** With these bodies the routes only lift a limit that another program has set. */
const LIFTS_LIMIT: Record<string, (body: Record<string, unknown>) => boolean> = {
  'PUT /:queueName/concurrency': ({ concurrency }) => concurrency === 0,
  'PUT /:queueName/rate-limit': ({ max }) => max === null,
  'PUT /:queueName/rate-limit/release': () => true,
};

const REFUSAL = forbidden(
  'Usher does not allow this change, because it can stop deliveries unnoticed; pause the queue instead',
);

/** Refuses what can stop deliveries unnoticed, and records every other change of a queue before it is made. */
function guardDashboard(scope: FastifyInstance, audit: AuditLog, queues: string[]) {
  scope.addHook('preHandler', async (request, reply) => {
    if (isOutside(request)) {
      sendFrame(request, reply);
      return reply;
    }
    if (SAFE_METHODS.includes(request.method)) return;
    const route = `${request.method} ${(request.routeOptions.url ?? '').replace(`${DASHBOARD_PATH}/api/queues`, '')}`;
    const action = actionOf(route, request.body);
    if (action === null) {
      sendProblem(reply, REFUSAL, null);
      return reply;
    }
    const { queueName, ...detail } = request.params as Record<string, string>;
    // Bull Board answers 404 for another queue.
    if (queueName !== undefined && !queues.includes(queueName)) return;
    const operation = route
      .split('/')
      .filter((segment) => /^[a-z]/.test(segment))
      .join(' ');
    await audit.record({
      action,
      subject: `queue:${queueName ?? 'all'}`,
      actor: actorOf(request),
      detail: { operation, ...detail },
    });
  });
}

/** Null: the change is refused. */
function actionOf(route: string, body: unknown) {
  const lifts = LIFTS_LIMIT[route]?.((body ?? {}) as Record<string, unknown>);
  return lifts || CHANGES.includes(route) ? 'queue.changed' : (PAUSES[route] ?? null);
}
