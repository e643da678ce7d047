import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { AuditAction } from '../../../audit/audit-event.entity.js';
import type { AuditLog } from '../../../audit/audit.module.js';
import { actorOf } from '../../../http/exchange.js';
import { sendProblem } from '../../../http/error-response.js';
import { Problem } from '../../../http/problem.js';

export const DASHBOARD_PATH = '/ops/queues';

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

const READING = ['GET', 'HEAD', 'OPTIONS'];

const REFUSAL = new Problem(
  403,
  'Forbidden',
  'Usher does not allow this change, because it can stop deliveries unnoticed; pause the queue instead',
);

/** Refuses what can stop deliveries unnoticed, and records every other change of a queue before it is made. */
export function guardDashboard(scope: FastifyInstance, audit: AuditLog, queues: string[]): void {
  scope.addHook('preHandler', async (request, reply) => {
    if (READING.includes(request.method)) return undefined;
    const action = actionOf(request);
    if (action === null) {
      sendProblem(reply, REFUSAL);
      return reply;
    }
    const { queueName, ...detail } = request.params as Record<string, string>;
    // Bull Board answers 404 for another queue.
    if (queueName !== undefined && !queues.includes(queueName)) return undefined;
    const operation = routeName(request).split('/').filter(isWord).join(' ');
    await audit.record({
      action,
      subject: `queue:${queueName ?? 'all'}`,
      actor: actorOf(request),
      detail: { operation, ...detail },
    });
    return undefined;
  });
}

/** Null: the change is refused. */
function actionOf(request: FastifyRequest): AuditAction | null {
  const route = `${request.method} ${routeName(request)}`;
  const lifts = LIFTS_LIMIT[route]?.((request.body ?? {}) as Record<string, unknown>) ?? false;
  return lifts ? 'queue.changed' : (ALLOWED[route] ?? null);
}

const routeName = ({ routeOptions }: FastifyRequest): string => (routeOptions.url ?? '').replace(API, '');

const isWord = (segment: string): boolean => /^[a-z]/.test(segment);
