import { Logger } from '@nestjs/common';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Histogram, type Registry } from 'prom-client';
import { REQUEST_ID_HEADER } from '../http/request-id.js';

const BUCKETS_S = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
/** The label of requests that no route took: their paths are anybody's invention. */
const NO_ROUTE = 'none';

const logger = new Logger('http');

type Request = FastifyRequest & { user?: { id: string } | null };

/** Gives every answer its request's id, and every request its canonical line and its place in the histogram. */
export function observeRequests(server: FastifyInstance, registry: Registry): void {
  const durations = new Histogram({
    name: 'usher_http_request_duration_seconds',
    help: 'How long requests took, by method, route and class of status.',
    labelNames: ['method', 'route', 'status'],
    buckets: BUCKETS_S,
    registers: [registry],
  });
  server.addHook('onRequest', (request, reply, done) => {
    reply.header(REQUEST_ID_HEADER, request.id);
    done();
  });
  server.addHook('onResponse', (request, reply, done) => {
    tell(request, reply);
    const { method, routeOptions } = request;
    const status = `${Math.floor(reply.statusCode / 100)}xx`;
    durations.observe({ method, route: routeOptions.url ?? NO_ROUTE, status }, reply.elapsedTime / 1_000);
    done();
  });
}

/** Nothing of the address but the route's pattern, no header and no body: there may be secrets in them. */
function tell({ method, routeOptions, user, id }: Request, { statusCode, elapsedTime }: FastifyReply): void {
  const route = routeOptions.url ?? null;
  const line = {
    ...{ method, route, status: statusCode, durationMs: Math.round(elapsedTime * 10) / 10 },
    ...{ client: user?.id ?? null, requestId: id },
  };
  if (isAskedAllTheTime(route)) logger.debug(line);
  else logger.log(line);
}

/** By load balancers and Prometheus. */
const isAskedAllTheTime = (route: string | null): boolean =>
  route !== null && (route === '/ops/metrics' || route.startsWith('/health/'));

/** The line of what was answered before it could be read as a request for any route. */
export function logUnreadableRequest(status: number, requestId: string): void {
  logger.log({ method: null, route: null, status, durationMs: null, client: null, requestId });
}
