import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { FastifyAdapter } from '@bull-board/fastify';
import { getQueueToken } from '@nestjs/bullmq';
import type { INestApplicationContext } from '@nestjs/common';
import type { Queue } from 'bullmq';
import type { FastifyInstance, FastifyPluginCallback, FastifyReply, FastifyRequest } from 'fastify';
import type { AuditAction } from '../../../audit/audit-event.entity.js';
import { AuditLog } from '../../../audit/audit.module.js';
import { sendProblem } from '../../../http/error-response.js';
import { actorOf } from '../../../http/exchange.js';
import { Html, html } from '../../../http/html.js';
import { Problem } from '../../../http/problem.js';
import { SANDBOX_QUEUE } from '../../../orders/sandbox/sandbox.module.js';
import { QUEUE_CONNECTIONS, type QueueConnections } from '../../../queue/queue-connections.js';
import { PURGE_QUEUE } from '../../../retention/purge.js';
import { WEBHOOK_QUEUE } from '../../../webhooks/queue/delivery.queue.js';
import { RETRY_RUN_QUEUE } from '../../../webhooks/queue/retry-run.js';
import type { Config } from '../../settings/settings.js';
import { SAFE_METHODS } from '../access/browser-sessions.js';
import { brand, OPS_HEADERS, sectionLinks, whoIsSignedIn } from '../frame/frame.js';
import { mayChange, signedInOf } from '../frame/signed-in.js';
import { NAVIGATION_STYLE, TOKENS } from '../frame/style.js';

const DASHBOARD_PATH = '/ops/queues';

/** Bull Board's page runs its own scripts, sets styles in its elements, and loads nothing from other hosts. */
const DASHBOARD_POLICY =
  "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; object-src 'none'; base-uri 'self'; " +
  "form-action 'self'; frame-ancestors 'none'";

/** Bull Board for all queues. Its own login option protects only the page, so operator-access.ts checks every request. */
export function mountDashboard(app: INestApplicationContext, server: FastifyInstance, { environment }: Config): void {
  const adapter = new FastifyAdapter();
  adapter.setBasePath(DASHBOARD_PATH);
  const { redis } = app.get<QueueConnections>(QUEUE_CONNECTIONS);
  const queues = [WEBHOOK_QUEUE, RETRY_RUN_QUEUE, PURGE_QUEUE];
  if (environment === 'sandbox') queues.push(SANDBOX_QUEUE);
  createBullBoard({
    queues: queues.map((name) => new BullMQAdapter(app.get<Queue>(getQueueToken(name)))),
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
    guardDashboard(scope, app.get(AuditLog), queues);
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

const HEIGHT = '3.25rem';

/** The tokens hold in the bar alone, because Bull Board has variables of the same names. */
const BAR_STYLE = `${TOKENS.replaceAll(':root', '.u-bar')}${NAVIGATION_STYLE}
.u-bar{position:fixed;inset:0 0 auto 0;z-index:100;height:${HEIGHT};box-sizing:border-box;display:flex;align-items:center;gap:1rem;padding:0 1rem;background:var(--surface);border-bottom:1px solid var(--line);font:var(--body);color:var(--text)}
.u-bar h1{position:absolute;width:1px;height:1px;margin:0;overflow:hidden;clip-path:inset(50%)}
.u-bar *{box-sizing:border-box}.u-bar .u-nav{min-width:0}.u-bar .u-nav ul{display:flex}
.u-bar .u-nav a{padding:.375rem .5rem}
.u-bar .u-who{margin-left:auto}.u-bar .u-who a{color:inherit}
.u-bar button{font:inherit;font-weight:550;color:inherit;min-height:2rem;padding:.25rem .625rem;border:1px solid var(--edge);border-radius:.375rem;background:var(--surface);cursor:pointer}
.u-bar :focus-visible{outline:2px solid var(--accent);outline-offset:2px}
.u-bar .u-nav[popover]{inset:${HEIGHT} 1rem auto auto;margin:0;padding:.5rem;border:1px solid var(--line);border-radius:.5rem;background:var(--surface);color:var(--text)}
.u-bar .u-nav[popover] ul{display:grid}
@media (min-width:72rem){.u-bar .u-menu{display:none}.u-bar .u-nav[popover]{display:block;position:static;padding:0;border:0}.u-bar .u-nav[popover] ul{display:flex}.u-bar .u-nav{order:1}.u-bar .u-who{order:2}}
#root header:has(~main){top:${HEIGHT}}
#root header~main{padding-top:calc(var(--header-offset) + ${HEIGHT})}
#root aside:has(+main){top:calc(var(--header-offset) + ${HEIGHT})}
`;

const STYLE_TAG = new Html(`<style>${BAR_STYLE}</style>`);
const BODY = /<body[^>]*>/;

/** Bull Board's page with the navigation of the console above it. */
function withNavigation(page: string, request: FastifyRequest): string {
  const operator = signedInOf(request);
  if (!operator) return page;
  const bar = html`${STYLE_TAG}
    <section class="u-bar" aria-label="Usher">
      <h1>Queues</h1>
      ${brand} ${whoIsSignedIn(request, operator)}
      <button type="button" class="u-menu" popovertarget="sections">Menu</button>
      <nav class="u-nav" id="sections" popover aria-label="Sections">${sectionLinks('queues')}</nav>
    </section>`;
  return page.replace(BODY, (body) => body + bar.text);
}

/** Bull Board shows no button of a queue that is read-only. JSON escapes quotes, so no text of a job looks like this member. */
const readOnlyFor = (request: FastifyRequest, json: string): string =>
  mayChange(request) ? json : json.replaceAll('"readOnlyMode":false', '"readOnlyMode":true');

const API = `${DASHBOARD_PATH}/api/queues`;

/**
 * The writing routes of Bull Board that are allowed, and how the audit names them. All others are refused, also those
 * of a later version: they limit a queue without a word, add jobs or schedules of their own, or undo a pause unseen.
 */
const ALLOWED: Record<string, AuditAction> = {
  'PUT /pause': 'queue.paused',
  'PUT /resume': 'queue.resumed',
  'PUT /:queueName/pause': 'queue.paused',
  'PUT /:queueName/resume': 'queue.resumed',
  'PUT /:queueName/retry/:queueStatus': 'queue.changed',
  'PUT /:queueName/promote': 'queue.changed',
  'PUT /:queueName/clean/:queueStatus': 'queue.changed',
  'PUT /:queueName/empty': 'queue.changed',
  'PUT /:queueName/:jobId/retry': 'queue.changed',
  'PUT /:queueName/:jobId/promote': 'queue.changed',
  'PUT /:queueName/:jobId/clean': 'queue.changed',
  'PATCH /:queueName/:jobId/update-data': 'queue.changed',
  'PATCH /:queueName/:jobId/delay': 'queue.changed',
  'PATCH /:queueName/:jobId/priority': 'queue.changed',
};

/** With these bodies the routes only lift a limit that something else has set. */
const LIFTS_LIMIT: Record<string, (body: Record<string, unknown>) => boolean> = {
  'PUT /:queueName/concurrency': ({ concurrency }) => concurrency === 0,
  'PUT /:queueName/rate-limit': ({ max }) => max === null,
  'PUT /:queueName/rate-limit/release': () => true,
};

const REFUSAL = new Problem(
  403,
  'Forbidden',
  'Usher does not allow this change, because it can stop deliveries unnoticed; pause the queue instead',
);

/** Refuses what can stop deliveries unnoticed, and records every other change of a queue before it is made. */
function guardDashboard(scope: FastifyInstance, audit: AuditLog, queues: string[]): void {
  scope.addHook('preHandler', async (request, reply) => {
    if (SAFE_METHODS.includes(request.method)) return;
    const action = actionOf(request);
    if (action === null) {
      sendProblem(reply, REFUSAL);
      return reply;
    }
    const { queueName, ...detail } = request.params as Record<string, string>;
    // Bull Board answers 404 for another queue.
    if (queueName !== undefined && !queues.includes(queueName)) return;
    const operation = routeName(request).split('/').filter(isWord).join(' ');
    await audit.record({
      action,
      subject: `queue:${queueName ?? 'all'}`,
      actor: actorOf(request),
      detail: { operation, ...detail },
    });
  });
}

/** Null: the change is refused. */
function actionOf(request: FastifyRequest): AuditAction | null {
  const route = `${request.method} ${routeName(request)}`;
  const lifts = LIFTS_LIMIT[route]?.((request.body ?? {}) as Record<string, unknown>);
  return lifts ? 'queue.changed' : (ALLOWED[route] ?? null);
}

const routeName = ({ routeOptions }: FastifyRequest): string => (routeOptions.url ?? '').replace(API, '');

const isWord = (segment: string): boolean => /^[a-z]/.test(segment);
