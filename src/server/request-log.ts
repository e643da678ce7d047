import { Logger } from '@nestjs/common';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Histogram, type Registry } from 'prom-client';
import { REQUEST_ID_HEADER } from '../http/exchange.js';

const BUCKETS_S = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
/** Label of requests without a route. Their paths are arbitrary, so they would make unlimited labels. */
const NO_ROUTE = 'none';

const logger = new Logger('Usher http');

/** Status of a request whose caller closed the connection before the end of the response, as nginx has it. */
const GIVEN_UP = 499;

type Request = FastifyRequest & { user?: { id: string } | null };

/** Adds the request id to every response, and writes one log line and one histogram value for every request. */
export function observeRequests(server: FastifyInstance, registry: Registry): void {
  const durations = new Histogram({
    name: 'usher_http_request_duration_seconds',
    help: 'How long requests took, by method, route and class of status; 499 means that the caller closed the connection.',
    labelNames: ['method', 'route', 'status'],
    buckets: BUCKETS_S,
    registers: [registry],
  });
  const observe = (request: FastifyRequest, { raw, elapsedTime }: FastifyReply): void => {
    const statusCode = raw.writableFinished ? raw.statusCode : GIVEN_UP;
    const { method, routeOptions, user, id } = request as Request;
    const route = routeOptions.url ?? null;
    const durationMs = Math.round(elapsedTime * 10) / 10;
    // The route's pattern, but not the URL, headers or body, because they may contain secrets.
    const line = { method, route, status: statusCode, durationMs, client: user?.id ?? null, requestId: id };
    logger[isPolled(route) ? 'debug' : 'log'](line);
    const status = statusCode === GIVEN_UP ? String(GIVEN_UP) : `${Math.floor(statusCode / 100)}xx`;
    durations.observe({ method, route: route ?? NO_ROUTE, status }, elapsedTime / 1_000);
  };
  server.addHook('onRequest', (request, reply, done) => {
    reply.header(REQUEST_ID_HEADER, request.id);
    // This event follows the end of a complete response too.
    reply.raw.once('close', () => observe(request, reply));
    done();
  });
}

/** Load balancers and Prometheus request these routes all the time. */
export const isPolled = (route: string | null): boolean =>
  route !== null && (route === '/ops/metrics' || route.startsWith('/health/'));

/** Logs a request that was answered before a route was known. */
export function logUnreadableRequest(status: number, requestId: string): void {
  logger.log({ method: null, route: null, status, durationMs: null, client: null, requestId });
}
