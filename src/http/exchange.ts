import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { pipeline, type Readable, type Writable } from 'node:stream';
import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import { type Actor, actor } from '../values/actor.js';
import { ipv6Groups, parseUrl, withoutMapping } from '../values/urls/notify-url.js';
import { badRequest, type Problem } from './problem.js';

/** What Usher reads of a request, on Fastify and on Express alike. */
export interface HttpRequest {
  method: string;
  url: string;
  /** The URL as the client sent it, where the framework changes `url`. */
  originalUrl?: string;
  headers: IncomingMessage['headers'];
  /** The client's address, as the application's `trust proxy` setting has it. */
  ip?: string;
  /** `http` or `https`, as `trust proxy` has it. */
  protocol?: string;
  /** The Host header, as `trust proxy` has it. */
  host?: string;
  id?: unknown;
  body?: unknown;
  /** Node's own request. Express's request is one itself. */
  raw?: IncomingMessage;
  rawHeaders?: string[];
}

/** What Usher writes to a response. Fastify's reply and Express's response both have it. */
export interface HttpResponse {
  header(name: string, value: string): unknown;
  status(code: number): unknown;
  send(body: unknown): unknown;
}

/** Node's own request: one object a request, whatever the framework hands around. */
export const rawRequest = (request: HttpRequest): Pick<IncomingMessage, 'rawHeaders' | 'headers'> =>
  request.raw ?? (request as unknown as IncomingMessage);

/** With a name as long as DNS permits, because answers are kept for each address. */
const BASE_URL = /^https?:\/\/(\[[0-9a-f:.]{2,45}\]|[a-z0-9._-]{1,254})(:\d{0,5})?$/i;

/** The address that a client says it uses. It is only trusted where no public address is set. */
export function originOf({ protocol, host, headers }: HttpRequest): string {
  const text = `${protocol}://${host ?? headers.host}`;
  const url = BASE_URL.test(text) ? parseUrl(text) : null;
  if (!url) throw badRequest('the Host header is malformed');
  return url.origin;
}

/** How often a request has a header; `name` is in lower case. Node's own `headers` keep only one value of some headers. */
export function countHeader({ rawHeaders }: Pick<IncomingMessage, 'rawHeaders'>, name: string): number {
  let count = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const given = rawHeaders[index] as string;
    if (given.length === name.length && given.toLowerCase() === name) count += 1;
  }
  return count;
}

/** With two of one of these headers it is undefined which one applies. */
export const SINGLE_HEADERS = ['Host', 'Authorization', 'Content-Type'];

/** Throws 400 for two headers of a name in {@link SINGLE_HEADERS}: Node's own `headers` would have the first one alone. */
export function checkSingleHeaders(request: HttpRequest): void {
  const repeated = SINGLE_HEADERS.find((name) => countHeader(rawRequest(request), name.toLowerCase()) > 1);
  if (repeated !== undefined) throw severalHeaders(repeated);
}

export const severalHeaders = (name: string): Problem => badRequest(`send only one ${name} header`);

/** The pattern of the matched route, such as `/webhooks/:id`; null where no route matched. */
export function routeOf(request: object): string | null {
  const { routeOptions, route } = request as { routeOptions?: { url?: string }; route?: { path?: string } };
  return routeOptions?.url ?? route?.path ?? null;
}

/** Whether a load balancer asks for the state of the server. */
export const isProbe = (request: object): boolean => routeOf(request)?.startsWith('/health/') ?? false;

export function setHeaders(response: HttpResponse, headers: Record<string, string>): void {
  for (const [name, value] of Object.entries(headers)) response.header(name, value);
}

/** Sends a stream as the body. If the stream fails, the connection is cut, so that the client notices that it is incomplete. */
export function sendStream(response: HttpResponse, body: Readable): void {
  // Fastify's reply takes the stream; Express's response is Node's own.
  if ('raw' in response) response.send(body);
  else pipeline(body, response as unknown as Writable, () => undefined);
}

/** Marks the digits of a `bigint`. No other text that Usher writes begins with NUL. */
const BIGINT = '\u0000bigint ';
const BIGINT_TEXT = /"\\u0000bigint (\d+)"/g;

/** JSON with every digit of a `bigint`, which JSON.stringify() refuses. */
export function exactJson(value: unknown, indent?: number): string {
  const marked = (_: string, member: unknown): unknown => (typeof member === 'bigint' ? `${BIGINT}${member}` : member);
  return JSON.stringify(value, marked, indent).replace(BIGINT_TEXT, '$1');
}

/** Some proxies write `192.0.2.1:54321` or `[2001:db8::1]:54321` into X-Forwarded-For. */
const WITH_PORT = /^(?:\[([^\]]*)\]|([^:]*))(?::\d+)?$/;

/** The IP address in a client's address, without a port, brackets, a zone or the mapping of IPv4. Null if there is none. */
export function plainAddress(text: string): string | null {
  const [, inBrackets, beforePort] = WITH_PORT.exec(text) ?? [];
  const address = (inBrackets ?? beforePort ?? text).replace(/%.*$/, '');
  return isIP(address) === 0 ? null : withoutMapping(address);
}

/**
 * The key under which rate limits count an address: an IPv4 address itself, or the /64 network of an IPv6 address,
 * because one household or server usually has a whole /64. With three `groups` it is the /48, which one customer can have.
 */
export function addressGroup(address: string, groups = 4): string {
  if (isIP(address) === 4) return address;
  const plain = plainAddress(address);
  if (plain === null) return 'unknown';
  return isIP(plain) === 4 ? plain : `${ipv6Groups(plain).slice(0, groups).join(':')}::/${groups * 16}`;
}

export const REQUEST_ID_HEADER = 'X-Request-Id';
const MAX_REQUEST_ID_LENGTH = 64;
/** The allowed format of a client's own request id. The log contains it unchanged. */
export const REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/;

/** An application's own request id as a column keeps it, because an id that is long or not ASCII must not prevent the change. */
export const storedRequestId = (id: string | null): string | null =>
  id && id.replace(/[^\x20-\x7e]/g, '?').slice(0, MAX_REQUEST_ID_LENGTH);

/** The X-Request-Id header if its format is allowed, otherwise a new id. */
export function requestIdOf({ headers }: Pick<IncomingMessage, 'headers'>): string {
  const given = headers['x-request-id'];
  return typeof given === 'string' && REQUEST_ID.test(given) ? given : newRequestId();
}

export const newRequestId = (): string => randomUUID();

const ids = new WeakMap<object, string>();

/** The id that the application gave the request, or one of Usher's own, which stays the same for the request. */
export function idOfRequest(request: HttpRequest): string {
  if (typeof request.id === 'string' && REQUEST_ID.test(request.id)) return request.id;
  const raw = rawRequest(request);
  const id = ids.get(raw) ?? requestIdOf(raw);
  ids.set(raw, id);
  return id;
}

/** Replaces the type of the parameter, which TypeScript has stored by now. A ValidationPipe checks no Object. */
const hideType: ParameterDecorator = (controller, method = '', index) => {
  const types = Reflect.getOwnMetadata('design:paramtypes', controller, method) as unknown[] | undefined;
  if (types) types[index] = Object;
};

/**
 * Like `createParamDecorator`, but pipes do not see the type of the parameter. A global ValidationPipe with
 * `validateCustomDecorators` and `whitelist` would strip a `Client` of its id.
 */
export const parameterFrom = (read: (context: ExecutionContext) => unknown, ...more: ParameterDecorator[]) =>
  createParamDecorator((_: unknown, context: ExecutionContext) => read(context), [hideType, ...more]);

/** Injects the request id, which is also in the log. */
export const RequestId = parameterFrom((context) => idOfRequest(context.switchToHttp().getRequest()));

const actors = new WeakMap<object, Actor>();

/** The client's address, as the application's `trust proxy` setting has it; null if it is not known. */
export const addressOf = ({ ip = '' }: Pick<HttpRequest, 'ip'>): string | null => plainAddress(ip);

/** Remembers who a request authenticated as, for {@link RequestActor}. */
export function setActor(request: HttpRequest, kind: 'operator' | 'internal' | 'client', user: string): void {
  actors.set(rawRequest(request), actor(kind, user, addressOf(request)));
}

export function actorOf(request: HttpRequest & { user?: { id: string } | null }): Actor {
  const known = actors.get(rawRequest(request));
  if (known) return known;
  if (!request.user) throw new Error('@RequestActor() needs a guard of Usher');
  return actor('client', request.user.id, addressOf(request));
}

/** Injects who makes the request, for the audit: a client, the operator, or an order service. */
export const RequestActor = parameterFrom((context) => actorOf(context.switchToHttp().getRequest()));
