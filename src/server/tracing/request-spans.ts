import { type Context, context, propagation, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { isTracing, tracer } from '../../telemetry/tracing.js';
import { isPolled } from '../request-log.js';

/**
 * Gives each request a span, which is active while it is answered and logged. A route that is polled all the time gets none.
 * Add it before all other hooks. Without an SDK it adds nothing.
 */
export function traceRequests(server: FastifyInstance): void {
  if (!isTracing()) return;
  const contexts = new WeakMap<FastifyRequest, Context>();
  const continued = (request: FastifyRequest, done: () => void): void =>
    context.with(contexts.get(request) ?? context.active(), done);
  server.addHook('onRequest', (request, _, done) => {
    if (!isPolled(request.routeOptions.url ?? null)) contexts.set(request, startSpan(request));
    continued(request, done);
  });
  // The body is read in the context of the connection, so the context of the request is set again.
  server.addHook('preValidation', (request, _, done) => continued(request, done));
  server.addHook('onResponse', (request, reply, done) => {
    const active = contexts.get(request);
    if (active) endSpan(active, reply);
    continued(request, done);
  });
}

function startSpan(request: FastifyRequest): Context {
  const { method, routeOptions, headers, protocol, id } = request;
  const route = routeOptions.url;
  const caller = propagation.extract(ROOT_CONTEXT, headers);
  // Only an order service, which belongs to the operator, may decide with its headers what is traced.
  const isOwn = route?.startsWith('/internal/') === true;
  const callerSpan = trace.getSpanContext(caller);
  const span = tracer().startSpan(
    route === undefined ? method : `${method} ${route}`,
    {
      kind: SpanKind.SERVER,
      ...(!isOwn && callerSpan && { links: [{ context: callerSpan }] }),
      attributes: {
        'http.request.method': method,
        'url.scheme': protocol,
        ...(route !== undefined && { 'http.route': route }),
        'usher.request.id': id,
      },
    },
    isOwn ? caller : ROOT_CONTEXT,
  );
  return trace.setSpan(ROOT_CONTEXT, span);
}

function endSpan(active: Context, { statusCode, request }: FastifyReply): void {
  const span = trace.getSpan(active);
  const client = (request as FastifyRequest & { user?: { id: string } | null }).user?.id;
  if (client !== undefined) span?.setAttribute('usher.client.id', client);
  span?.setAttribute('http.response.status_code', statusCode);
  if (statusCode >= 500) span?.setStatus({ code: SpanStatusCode.ERROR });
  span?.end();
}
