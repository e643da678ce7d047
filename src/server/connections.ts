import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { Logger } from '@nestjs/common';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { addressGroup, checkSingleHeaders, countHeader, isProbe, plainAddress } from '../http/exchange.js';
import { badRequest, type Problem, standardProblem, tooManyRequests, unavailable } from '../http/problem.js';
import { Limiter, limitKey } from '../limits/limiter.js';
import { RepeatedWarnings } from '../queue/repeated-warnings.js';
import type { TrustedProxies } from '../options/option-kinds.js';
import { blockList, familyOf } from '../values/urls/notify-url.js';
import type { Config } from './settings/settings.js';
import { dropFurtherRequests } from './unreadable-requests.js';

const LOOPBACK_HOST = /^(localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])(:\d*)?$/i;

/**
 * Limits the requests without credentials of one address, before other work is done for them. Only one of them begins in each
 * turn of the event loop, so that requests with credentials hardly wait for them. A request counts even with credentials where
 * nothing checks them: at an unknown path, and at a page for browsers. `refuse` answers in the form of the path.
 */
export function limitAnonymous(
  server: FastifyInstance,
  config: Pick<Config, 'anonymousRateLimit' | 'opsPort'>,
  refuse: (problem: Problem, request: FastifyRequest, reply: FastifyReply, done: (error: Problem) => void) => void,
): void {
  const { anonymousRateLimit: rate } = config;
  if (!rate) return;
  const limiter = new Limiter(rate, null);
  const waiting: (() => void)[] = [];
  const beginNext = (): void => {
    if (waiting.length > 1) setImmediate(beginNext);
    waiting.shift()?.();
  };
  const check = (request: FastifyRequest, reply: FastifyReply, done: (error?: Problem) => void): void => {
    const wait = limiter.count(limitKey(addressGroup(request.ip)));
    if (wait > 0) refuse(tooManyAnonymous(wait), request, reply, done);
    else if (waiting.push(done) === 1) setImmediate(beginNext);
  };
  const isCounted =
    config.opsPort === null
      ? isAnonymous
      : (request: FastifyRequest) =>
          isAnonymous(request) || (isAtPublicPort(request, config) && OPERATORS.test(request.routeOptions.url ?? ''));
  server.addHook('onRequest', (request, reply, done) => (isCounted(request) ? check(request, reply, done) : done()));
}

/** Routes that check the credentials of every request. */
export const CREDENTIAL_ROUTES =
  /^\/(auth\/(token|refresh|revoke|introspect)|client|movie-orders|webhooks|webhook-resends|sandbox|internal|ops(?!\/console\.)|docs\/internal(\.json)?)(\/|$)/;
/** What only OPS_PORT answers, if it is set. */
export const OPERATORS = /^\/+(ops|internal|docs\/internal(\.json)?)([/#]|$)/i;

const isAnonymous = (request: FastifyRequest): boolean =>
  !(hasCredentials(request) && CREDENTIAL_ROUTES.test(request.routeOptions.url ?? '')) && !isProbe(request);

/** A request with two Authorization headers is refused, so nothing checks them. */
const hasCredentials = ({ headers, raw }: FastifyRequest): boolean =>
  !!headers.authorization && countHeader(raw, 'authorization') === 1;

export const tooManyAnonymous = (waitSeconds: number): Problem =>
  tooManyRequests('too many requests without credentials from this address; try again later', waitSeconds);

/**
 * Requires exactly one Host header (RFC 9112 §3.2), because Node's own 400 has no body. With unsafe defaults only a
 * loopback host is answered: another site can give its own name the address 127.0.0.1 (DNS rebinding), and would then
 * have the same origin as /ops, whose password is known.
 */
export function checkHeaders(request: FastifyRequest, { unsafeDefaults }: Pick<Config, 'unsafeDefaults'>): void {
  checkSingleHeaders(request);
  const { httpVersion, headers } = request.raw;
  if (httpVersion === '1.1' && headers.host === undefined) throw hostMissing();
  if (unsafeDefaults.length > 0 && headers.host !== undefined && !LOOPBACK_HOST.test(headers.host))
    throw standardProblem(421, ONLY_LOOPBACK);
}

const ONLY_LOOPBACK =
  'with its defaults for local use Usher answers only at localhost; use http://localhost, or set what start-up lists as defaults';

export const hostMissing = (): Problem => badRequest('the Host header is missing');

/**
 * How many requests of one connection run at the same time. HTTP/1.1 lets a client send any number of requests without
 * waiting for responses (RFC 9112 §9.3.2), and Node starts all of them at once.
 */
export const MAX_RUNNING_REQUESTS = 4;

/** A connection with more waiting requests is closed. Each needs some kilobytes. Node reads 64 KiB at once, which can hold thousands. */
export const MAX_WAITING_REQUESTS = 100;

const TOO_MANY_WAITING = `more than ${MAX_WAITING_REQUESTS} waiting requests; a client must wait for responses before it sends more`;
const connectionWarnings = new RepeatedWarnings(new Logger('Usher connections'));

/** The requests of one connection, in the order in which they arrived. */
class Connection {
  private running = 0;
  private readonly waiting: (() => void)[] = [];

  constructor(private readonly socket: Socket) {
    // Nobody reads the responses any more, so the waiting requests are dropped.
    socket.once('close', () => (this.waiting.length = 0));
  }

  enter(begin: () => void): void {
    if (this.waiting.push(begin) > MAX_WAITING_REQUESTS) this.end();
    this.beginNext();
    if (this.waiting.length > 0) this.pauseSoon();
  }

  private end(): void {
    connectionWarnings.warn(`closed a connection of ${this.socket.remoteAddress} with ${TOO_MANY_WAITING}`);
    dropFurtherRequests(this.socket);
    this.socket.destroy();
  }

  readonly leave = (): void => {
    this.running -= 1;
    if (this.waiting.length > 0) this.beginLater();
  };

  /** The next one begins in a later turn of the event loop, so that the requests of other connections come between. */
  private beginLater(): void {
    setImmediate(this.beginNext);
    this.pauseSoon();
  }

  /**
   * Reads no further requests while some wait, so that a client with many of them is slowed down before it reaches the limit.
   * The bodies of the waiting requests have been read, except for the last one's, which is read once that request runs. Node
   * resumes the socket in a tick when it has parsed a request, and after a response. A microtask comes after all ticks, and before
   * the next read: one turn of the event loop reads up to 2 MiB.
   */
  private pauseSoon(): void {
    queueMicrotask(() => this.waiting.length > 0 && this.socket.pause());
  }

  private readonly beginNext = (): void => {
    while (this.running < MAX_RUNNING_REQUESTS && this.waiting.length > 0 && !this.socket.destroyed) {
      this.running += 1;
      this.waiting.shift()?.();
    }
    if (this.waiting.length === 0 && this.socket.isPaused()) this.socket.resume();
  };
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

/** Routes that wait for a receiver, or for the queue. */
export const WAITING_ROUTES =
  /^\/(webhooks\/test|client\/notify-url|sandbox\/certifications|ops\/(queues.*|(receivers|clients)\/:\w+\/(test|notify-url))|portal\/settings\/(test|notify-url|certify))$/;

/** On Node 20 and 22, a timer in a WeakMap would keep the request in memory until a collection of the old generation. */
type TimedRequest = FastifyRequest & { usherTimer?: NodeJS.Timeout | null };

/**
 * Answers 503 to a request that takes longer than `databaseTimeoutMs`. Its statement goes on until the database ends
 * it, because no driver can cancel one. The time in which a client sends a body does not count.
 */
export function answerInTime(server: FastifyInstance, { databaseTimeoutMs }: Pick<Config, 'databaseTimeoutMs'>): void {
  const answer = ({ method }: FastifyRequest, reply: FastifyReply): void => {
    if (!reply.raw.headersSent && !reply.raw.destroyed) reply.send(noAnswerIn(databaseTimeoutMs, method));
  };
  const start = (request: TimedRequest, reply: FastifyReply, done: () => void): void => {
    if (!WAITING_ROUTES.test(request.routeOptions.url ?? ''))
      request.usherTimer = setTimeout(answer, databaseTimeoutMs, request, reply).unref();
    done();
  };
  const stop = <T>(request: TimedRequest, _: FastifyReply, body: T, done: (error: null, body: T) => void): void => {
    clearTimeout(request.usherTimer ?? undefined);
    done(null, body);
  };
  server
    .decorateRequest('usherTimer', null)
    .addHook('onRequest', start)
    .addHook('preParsing', stop)
    .addHook('preValidation', start)
    .addHook('onSend', stop);
}

/** With this message and code, the log treats it like any failure of the database. */
function noAnswerIn(ms: number, method: string): Problem {
  const message = `no answer within ${ms / 1_000} s`;
  const advice = ['GET', 'HEAD'].includes(method) ? 'try again' : 'the request may still take effect';
  return Object.assign(unavailable(`the database gave ${message}; ${advice}`), { message, code: 'ETIMEDOUT' });
}

/**
 * Ends a connection that is idle after its keep-alive time, or whose client has read nothing for the server's timeout.
 * Without this listener, Node would also end a connection whose request runs for that long.
 */
export function endStalledConnections(server: Server): void {
  server.on('timeout', (socket: Socket & { _httpMessage?: object | null }) => {
    const isIdle = !socket._httpMessage && socket.timeout !== server.timeout;
    if (isIdle || socket.writableLength > 0) socket.destroy();
  });
}

const opsConnections = new WeakSet<Socket>();

/** Marks the connections to `server`, which listens at OPS_PORT. */
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
  const warn = (peer: string): void => {
    hasWarned = true;
    logger.warn(
      `X-Forwarded-For from ${peer} is ignored, because TRUST_PROXY does not name it; if this is your proxy, add it ` +
        'to TRUST_PROXY, because otherwise all clients behind it share the limits of one address',
    );
  };
  server.addHook('onRequest', ({ raw: { headers, socket } }, _, done) => {
    const peer = socket.remoteAddress ?? '';
    if (!hasWarned && headers['x-forwarded-for'] !== undefined && !trusts(peer, 0)) warn(peer);
    done();
  });
}
