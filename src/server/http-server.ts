import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { ClientAuthentication } from '../auth/client-authentication/client-authentication.js';
import { TokenEvents } from '../auth/tokens/token-events.js';
import { sendProblem } from '../http/error-response.js';
import { oauthRoute } from '../http/oauth-route.js';
import { requestIdOf } from '../http/request-id.js';
import { MetricsRegistry } from '../metrics/metrics.module.js';
import { answerBadUrl, answerConnectionFault, answerExpectations, checkHost } from './connection-faults.js';
import { mountDashboard } from './console/dashboard.js';
import { operatorRefusal } from './console/operator-access.js';
import { ErrorFilter } from './error.filter.js';
import { Drain } from './health/health.controller.js';
import { NestLogger } from './logger.js';
import { registerBodyParsers } from './request-bodies.js';
import { observeRequests } from './request-log.js';
import { methodsOf, recordRoutes } from './routes.js';
import { ServerModule } from './server.module.js';
import type { TrustedProxies } from './settings/setting-reader.js';
import type { Config } from './settings/settings.js';

const BODY_LIMIT_BYTES = 16 * 1_024;
const HEADER_LIMIT_BYTES = 16 * 1_024;
/** For the whole request, from its first byte to its last. */
const REQUEST_TIMEOUT_MS = 30_000;

/** The application with its HTTP side, ready to listen. */
export async function createHttpApplication(config: Config, logger: Logger): Promise<NestFastifyApplication> {
  const adapter = createAdapter(config);
  const routes = recordRoutes(adapter.getInstance() as unknown as FastifyInstance);
  const app = await NestFactory.create<NestFastifyApplication>(ServerModule.forRole(config), adapter, {
    abortOnError: false,
    logger: new NestLogger(logger),
  });
  const tokens = isApi(config) ? app.get(TokenEvents, { strict: false }) : null;
  app.useGlobalFilters(
    new ErrorFilter(
      (path) => methodsOf(routes, path),
      (request, error) => tokens?.refused(request, error),
    ),
  );
  registerBodyParsers(app, BODY_LIMIT_BYTES);
  answerExpectations(server(app).server);
  observeRequests(server(app), app.get(MetricsRegistry, { strict: false }));
  addHooks(app, config);
  mountDashboard(app, server(app));
  return app;
}

const isApi = ({ role }: Config): boolean => role !== 'worker';

function createAdapter({ trustProxy }: Config): FastifyAdapter {
  return new FastifyAdapter({
    bodyLimit: BODY_LIMIT_BYTES,
    requestTimeout: REQUEST_TIMEOUT_MS,
    trustProxy: fastifyTrustProxy(trustProxy),
    // While the server shuts down, it still answers requests on open connections.
    return503OnClosing: false,
    genReqId: requestIdOf,
    // checkHost() refuses a missing Host header with a response body, which Node would not send.
    http: { maxHeaderSize: HEADER_LIMIT_BYTES, requireHostHeader: false },
    clientErrorHandler: answerConnectionFault,
    frameworkErrors: answerBadUrl,
  });
}

/** Fastify treats a plain number of hops as no trusted proxy, so it gets a function instead. */
function fastifyTrustProxy(proxies: TrustedProxies): false | string[] | ((address: string, hop: number) => boolean) {
  if (proxies === null) return false;
  return 'addresses' in proxies ? proxies.addresses : (_, hop) => hop < proxies.hops;
}

const server = (app: NestFastifyApplication): FastifyInstance =>
  app.getHttpAdapter().getInstance() as unknown as FastifyInstance;

/** Adds the checks that run before the body is read: Host header, operator, client credentials, media type. */
function addHooks(app: NestFastifyApplication, config: Config): void {
  const authentication = isApi(config) ? app.get(ClientAuthentication, { strict: false }) : null;
  const drain = app.get(Drain, { strict: false });
  // Without this header Node would keep such a connection open for as long as the client likes.
  server(app).addHook('onSend', async (_, reply) => {
    if (drain.hasBegun) reply.header('connection', 'close');
  });
  server(app).addHook('onRequest', async (request, reply) => {
    checkHost(request);
    const refusal = operatorRefusal(request, config.operator);
    if (refusal) {
      // Not thrown: Bull Board's own error handler would turn it into a 500.
      sendProblem(reply, refusal);
      return reply;
    }
    const route = oauthRoute(request);
    if (!authentication || !route) return undefined;
    await authentication.authenticate(request, reply, route);
    return undefined;
  });
}
