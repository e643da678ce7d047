import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { Logger } from '@nestjs/common';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { oauthBody, sendOAuthError, sendProblem } from '../http/error-response.js';
import { checkSingleHeaders, newRequestId, plainAddress, REQUEST_ID_HEADER, requestIdOf } from '../http/exchange.js';
import { isAuthPath, NO_STORE, pathOf } from '../http/oauth-route.js';
import { badRequest, Problem } from '../http/problem.js';
import type { TrustedProxies } from '../options/option-kinds.js';
import { blockList, familyOf } from '../values/urls/notify-url.js';
import { logUnreadableRequest } from './request-log.js';
import type { Config } from './settings/settings.js';

/** With any port. */
const LOOPBACK_HOST = /^(localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])(:\d*)?$/i;

const MALFORMED = { status: 400, description: 'this is not a valid HTTP/1.1 request' };

const FAULTS: Record<string, typeof MALFORMED> = {
  HPE_HEADER_OVERFLOW: { status: 431, description: 'the headers are larger than 16 KiB' },
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, description: 'the request did not arrive in time' },
};

/** Answers bytes that Node could not parse as a request. The route is unknown, so every client gets an OAuth error. */
export function answerConnectionFault(error: Error & { code?: string }, socket: Socket): void {
  const { status, description } = FAULTS[error.code ?? ''] ?? MALFORMED;
  // Like Node's own handler: a response that has started must not be followed by a second one.
  const { _httpMessage: response } = socket as { _httpMessage?: { headersSent: boolean } | null };
  if (error.code !== 'ECONNRESET' && socket.writable && !response?.headersSent)
    socket.write(rawResponse(status, description));
  socket.destroy();
}

function rawResponse(status: number, description: string): string {
  const { headers, body } = lastResponse(status, description, newRequestId());
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return [`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...lines, '', body].join('\r\n');
}

/** Refuses an Expect header other than 100-continue (RFC 9110 §10.1.1). */
export function answerExpectations(server: Server): void {
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    const description = 'this Expect header is not supported; use Expect: 100-continue';
    const { headers, body } = lastResponse(417, description, requestIdOf(request));
    response.writeHead(417, headers).end(body);
  });
}

/** Logs a request that no Fastify hook sees, and makes its response, after which the connection ends. */
function lastResponse(status: number, description: string, requestId: string) {
  logUnreadableRequest(status, requestId);
  const body = JSON.stringify(oauthBody('invalid_request', description));
  const headers = {
    ...NO_STORE,
    [REQUEST_ID_HEADER]: requestId,
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': body.length,
    Connection: 'close',
  };
  return { headers, body };
}

/** Answers a URL that the router cannot parse. */
export function answerBadUrl(_: Error, request: FastifyRequest, reply: FastifyReply): void {
  const problem = badRequest('the URL is malformed or too long');
  logUnreadableRequest(400, request.id);
  reply.header(REQUEST_ID_HEADER, request.id);
  if (isAuthPath(pathOf(request.raw.url ?? ''))) sendOAuthError(reply, 'invalid_request', problem);
  else sendProblem(reply, problem);
}

/**
 * Requires exactly one Host header (RFC 9112 §3.2), because Node's own 400 has no body, and at most one of others.
 * With unsafe defaults only a loopback host is answered: a page of another site can give its own name the address
 * 127.0.0.1 (DNS rebinding), and would then be on the same origin as /ops with its known password.
 */
export function checkHeaders(request: FastifyRequest, { unsafeDefaults }: Pick<Config, 'unsafeDefaults'>): void {
  checkSingleHeaders(request);
  const { raw } = request;
  const { host } = raw.headers;
  if (raw.httpVersion === '1.1' && host === undefined) throw hostMissing();
  if (unsafeDefaults.length > 0 && host !== undefined && !LOOPBACK_HOST.test(host))
    throw new Problem(
      421,
      'Misdirected Request',
      'with its defaults for local use Usher answers only at localhost; use http://localhost, or set what start-up lists as defaults',
    );
}

export const hostMissing = (): Problem => badRequest('the Host header is missing');

/**
 * How many requests of one connection run at the same time. HTTP/1.1 lets a client send any number of requests without
 * waiting for responses (RFC 9112 §9.3.2), and Node starts all of them at once.
 */
export const MAX_RUNNING_REQUESTS = 4;

/** The requests of one connection, in the order in which they arrived. */
class Connection {
  private running = 0;
  private readonly waiting: (() => void)[] = [];

  constructor(private readonly socket: Socket) {
    // Nobody reads the responses any more, so what has not begun never begins.
    socket.once('close', () => (this.waiting.length = 0));
  }

  enter(begin: () => void): void {
    this.waiting.push(begin);
    this.beginNext();
  }

  readonly leave = (): void => {
    this.running -= 1;
    this.beginNext();
  };

  private beginNext(): void {
    while (this.running < MAX_RUNNING_REQUESTS && this.waiting.length > 0) {
      this.running += 1;
      this.waiting.shift()?.();
    }
    this.readOrPause();
  }

  /**
   * Reads no further requests while some wait, so that their memory is bounded. The bodies of the waiting requests have
   * been read, except for the last one's, which is read once that request runs.
   */
  private readOrPause(): void {
    if (this.waiting.length > 0) this.socket.pause();
    else if (this.socket.isPaused()) this.socket.resume();
  }
}

/** Makes all but a few requests of a connection wait, so that one connection cannot hold up the others. */
export function takeTurns(server: FastifyInstance): void {
  const connections = new WeakMap<Socket, Connection>();
  server.addHook('onRequest', ({ raw: { socket } }, reply, done) => {
    let connection = connections.get(socket);
    if (!connection) connections.set(socket, (connection = new Connection(socket)));
    reply.raw.once('close', connection.leave);
    connection.enter(done);
  });
}

/**
 * Ends a connection whose client accepts no byte for the server's timeout. Node would also end one whose request runs for so
 * long, and tells in the same way that a connection has been idle for its keep-alive time.
 */
export function endStalledConnections(server: Server): void {
  server.on('timeout', (socket: Socket & { _httpMessage?: object | null }) => {
    const isIdle = !socket._httpMessage && socket.timeout !== server.timeout;
    if (isIdle || socket.writableLength > 0) socket.destroy();
  });
}

/** The connections to OPS_PORT. */
const opsConnections = new WeakSet<Socket>();

/** Makes `server` the listener of OPS_PORT. */
export function markOpsConnections(server: Server): void {
  server.on('connection', (socket: Socket) => opsConnections.add(socket));
}

/** Whether a request came to PORT while operators have a port of their own. */
export const isAtPublicPort = ({ raw }: FastifyRequest, { opsPort }: Pick<Config, 'opsPort'>): boolean =>
  opsPort !== null && !opsConnections.has(raw.socket);

/** Whether a proxy's X-Forwarded-For is trusted. `hop` counts from the connection, which is 0. */
export type Trust = (address: string, hop: number) => boolean;

/** Fastify treats a plain number of hops as no trusted proxy, and addresses with a port as unknown; so it gets a function. */
export function trustOf(proxies: TrustedProxies): Trust {
  if (proxies === null) return () => false;
  if ('hops' in proxies) return (_, hop) => hop < proxies.hops;
  const trusted = blockList(proxies.addresses);
  return (address) => {
    const plain = plainAddress(address);
    return plain !== null && trusted.check(plain, familyOf(plain));
  };
}

/**
 * Warns of the first X-Forwarded-For that is ignored. Behind a proxy that TRUST_PROXY does not name, all clients have
 * the proxy's address, so the limits for one address count them together.
 */
export function warnOfIgnoredHeader(server: FastifyInstance, trusts: Trust): void {
  const logger = new Logger('Usher limits');
  let hasWarned = false;
  server.addHook('onRequest', ({ raw: { headers, socket } }, _, done) => {
    const peer = socket.remoteAddress ?? '';
    if (!hasWarned && headers['x-forwarded-for'] !== undefined && !trusts(peer, 0)) {
      hasWarned = true;
      logger.warn(
        `X-Forwarded-For from ${peer} is ignored, because TRUST_PROXY does not name it; if this is your proxy, add it ` +
          'to TRUST_PROXY, because otherwise all clients behind it share the limits of one address',
      );
    }
    done();
  });
}
