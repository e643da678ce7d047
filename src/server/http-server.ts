import { createServer, type Server } from 'node:http';
import { NotFoundException } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { ClientAuthentication } from '../auth/client-authentication/client-authentication.js';
import { TokenEvents } from '../auth/tokens/token.service.js';
import { OAuthError } from '../http/oauth-error.js';
import { oauthRoute, pathOf } from '../http/oauth-route.js';
import { requestIdOf } from '../http/exchange.js';
import { notFound } from '../http/problem.js';
import { MetricsRegistry } from '../telemetry/metrics.module.js';
import {
  answerInTime,
  checkHeaders,
  endStalledConnections,
  isAtPublicPort,
  limitAnonymous,
  markOpsConnections,
  OPERATORS,
  takeTurns,
  type Trust,
  trustOf,
  warnOfIgnoredHeader,
} from './connections.js';
import { mountConsole } from './console/ops.module.js';
import { mountDashboard } from './console/queues/dashboard.js';
import { OPS_SITE } from './console/frame/frame.js';
import { sendError } from './console/frame/pages.js';
import { OperatorAccess } from './console/access/operator-access.js';
import { ErrorFilter, recordRoutes, unknownPath } from './error.filter.js';
import { HealthController } from './health/health.controller.js';
import { NestLogger } from './logger.js';
import { observeRequests } from './request-log.js';
import { registerBodyParsers } from './request-bodies.js';
import { mountPortal } from './portal/portal-pages.js';
import { ServerModule } from './server.module.js';
import type { Config } from './settings/settings.js';
import { traceRequests } from './tracing/request-spans.js';
import { answerBadUrl, answerConnectionFault, answerExpectations } from './unreadable-requests.js';

/** Of a parameter in a path, such as the host of a Notify URL. Fastify's default is 100. */
const MAX_PARAMETER_LENGTH = 300;
const BODY_LIMIT_BYTES = 16 * 1_024;
const HEADER_LIMIT_BYTES = 16 * 1_024;
/** For the whole request, from its first byte to its last. */
const REQUEST_TIMEOUT_MS = 30_000;
/** How long a client may read nothing of what is sent to it. */
const ACCEPT_TIMEOUT_MS = 30_000;
/** How often Node looks for requests that took longer. Its default of 30 s would let them last for up to 60 s. */
const TIMEOUT_CHECK_MS = 1_000;

/** checkHeaders() refuses a missing Host header with a response body, which Node would not send. */
const HTTP_OPTIONS = {
  maxHeaderSize: HEADER_LIMIT_BYTES,
  requireHostHeader: false,
  headersTimeout: REQUEST_TIMEOUT_MS,
  requestTimeout: REQUEST_TIMEOUT_MS,
  connectionsCheckingInterval: TIMEOUT_CHECK_MS,
};

/** The application with its HTTP side, and its listener for OPS_PORT, ready to listen. */
export async function createHttpApplication(config: Config, logger: Logger) {
  const trusts = trustOf(config.trustProxy);
  const adapter = createAdapter(trusts, config.guidesUrl);
  const server = adapter.getInstance() as unknown as FastifyInstance;
  takeTurns(server);
  const routes = recordRoutes(server);
  const app = await NestFactory.create<NestFastifyApplication>(ServerModule.forRole(config), adapter, {
    abortOnError: false,
    logger: new NestLogger(logger),
  });
  const filter = new ErrorFilter(config, routes, isApi(config) ? app.get(TokenEvents) : null, config.guidesUrl);
  app.useGlobalFilters(filter);
  registerBodyParsers(app, BODY_LIMIT_BYTES);
  const ops = config.opsPort === null ? null : createOpsListener(server, config.guidesUrl);
  for (const listener of [server.server, ...(ops ? [ops] : [])]) {
    answerExpectations(listener, config.guidesUrl);
    endStalledConnections(listener);
  }
  traceRequests(server);
  warnOfIgnoredHeader(server, trusts);
  observeRequests(server, app.get(MetricsRegistry));
  limitAnonymous(server, config, (problem, request, reply, done) =>
    isBelow(CONSOLE, request) ? sendError(OPS_SITE, problem, request, reply) : done(problem),
  );
  answerInTime(server, config);
  addHooks(app, server, config, filter);
  mountConsole(app, server);
  if (isApi(config)) mountPortal(app, server);
  mountDashboard(app, server);
  return { app, ops, health: app.get(HealthController) };
}

/** A second server for the same routes, with the limits of the first one. It is closed together with it. */
function createOpsListener(server: FastifyInstance, guidesUrl: string | null): Server {
  const { keepAliveTimeout } = server.server;
  const ops = createServer({ ...HTTP_OPTIONS, keepAliveTimeout }, server.routing);
  ops.setTimeout(ACCEPT_TIMEOUT_MS);
  ops.on('clientError', answerConnectionFault(guidesUrl));
  markOpsConnections(ops);
  const closed = new Promise<void>((done) => ops.once('close', done));
  server.addHook('preClose', (done) => {
    ops.close();
    done();
  });
  server.addHook('onClose', () => closed);
  return ops;
}

const isApi = ({ role }: Config): boolean => role !== 'worker';

function createAdapter(trustProxy: Trust, guidesUrl: string | null): FastifyAdapter {
  return new FastifyAdapter({
    bodyLimit: BODY_LIMIT_BYTES,
    routerOptions: { maxParamLength: MAX_PARAMETER_LENGTH },
    requestTimeout: REQUEST_TIMEOUT_MS,
    connectionTimeout: ACCEPT_TIMEOUT_MS,
    trustProxy,
    // While the server shuts down, it still answers requests on open connections.
    return503OnClosing: false,
    genReqId: requestIdOf,
    http: HTTP_OPTIONS,
    clientErrorHandler: answerConnectionFault(guidesUrl),
    frameworkErrors: (error: Error, request: FastifyRequest, reply: FastifyReply) =>
      answerBadUrl(error, request, reply, guidesUrl),
  });
}

/** Adds the checks that run before the body is read: Host header, listener, operator, client credentials, media type. */
function addHooks(app: NestFastifyApplication, server: FastifyInstance, config: Config, filter: ErrorFilter): void {
  const authentication = isApi(config) ? app.get(ClientAuthentication) : null;
  const access = app.get(OperatorAccess);
  const health = app.get(HealthController);
  // Without this header Node would keep such a connection open for as long as the client likes.
  server.addHook('onSend', (_, reply, payload, done) => {
    if (health.isShuttingDown) reply.header('connection', 'close');
    done(null, payload);
  });
  // A browser ignores it over http, and RFC 6797 section 7.2 forbids to send it there.
  if ([config.publicUrl, config.opsPublicUrl].some((url) => url?.startsWith('https:')))
    server.addHook('onRequest', (_, reply, done) => {
      reply.header('Strict-Transport-Security', 'max-age=31536000');
      done();
    });
  const checkOperator = async (request: FastifyRequest, reply: FastifyReply): Promise<boolean> => {
    checkHeaders(request, config);
    return access.check(request, reply);
  };
  const enterConsole = (request: FastifyRequest, reply: FastifyReply, done: () => void): void =>
    void checkOperator(request, reply).then(
      (isAccepted) => isAccepted && done(),
      // If it were thrown, Bull Board's own error handler would answer 500.
      (error: unknown) => sendError(OPS_SITE, error, request, reply),
    );
  if (config.opsPort !== null)
    server.addHook('onRequest', (request, reply, done) => {
      // Not thrown: the error handlers of the console would answer it with a page of the console.
      if (isAtPublicPort(request, config) && isBelow(OPERATORS, request))
        filter.answer(notFound(unknownPath('')), request, reply);
      else done();
    });
  // A callback, because this runs for every request, and most of them wait for nothing.
  server.addHook('onRequest', (request, reply, done) => {
    if (isBelow(CONSOLE, request)) return enterConsole(request, reply, done);
    checkHeaders(request, config);
    // Before the body is read, because a wrong path or method matters more than a wrong media type.
    if (request.is404) throw new NotFoundException();
    const route = oauthRoute(request);
    if (!authentication || !route) return done();
    const internal = route.internal && !isAtPublicPort(request, config);
    authentication.authenticate(request, reply, { internal }).then(() => done(endedMeanwhile(request)), done);
  });
}

/** After the end of its connection a body never ends. Without this error the request would not be finished or logged. */
const endedMeanwhile = ({ raw }: FastifyRequest): OAuthError | undefined =>
  raw.socket.destroyed ? new OAuthError('invalid_request', 'the connection ended before the body') : undefined;

const CONSOLE = /^\/+ops(\/|$)/i;

/** Matches the route that Fastify matched, however the path was written, and the path itself if no route matched. */
function isBelow(paths: RegExp, { routeOptions, url }: FastifyRequest): boolean {
  // Most URLs contain neither of these words nor an encoded character, so none of the spellings below can match.
  if (!/ops|internal|%/i.test(url)) return false;
  const path = url.split('?')[0] ?? '';
  return [routeOptions.url ?? '', path, pathOf(url)].some((spelling) => paths.test(spelling));
}
