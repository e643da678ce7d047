import type { IncomingHttpHeaders } from 'node:http';
import { applyDecorators, SetMetadata } from '@nestjs/common';
import type { HttpRequest } from './exchange.js';
import { OAuthError } from './oauth-error.js';

/** `internal`: whether the route also accepts the internal credential. */
export interface OAuthRouteOptions {
  internal: boolean;
}

/** Metadata key of {@link OAuthRouteOptions}. */
export const OAUTH_ROUTE = 'usher:oauth-route';

/**
 * Metadata key of every controller of Usher. A global guard of the application reads it, to leave the decision to
 * Usher's own guards: `reflector.getAllAndOverride(USHER_ROUTE, [context.getHandler(), context.getClass()])`.
 */
export const USHER_ROUTE = 'usher:route';

/** Marks a controller as one of Usher's. @nestjs/swagger leaves it out, and `addUsherPaths()` adds its routes. */
export const UsherRoutes = (): ClassDecorator =>
  applyDecorators(SetMetadata(USHER_ROUTE, true), SetMetadata('swagger/apiExcludeController', [true]));

/** Where @nestjs/platform-fastify finds a route's `config`. That package is optional, so it is not imported here. */
export const FASTIFY_ROUTE_CONFIG = '__fastify_route_config__';

/** Marks an OAuth route: clients authenticate by Basic, and errors are as in RFC 6749 §5.2. */
export const OAuthRoute = (options: OAuthRouteOptions = { internal: false }): MethodDecorator =>
  applyDecorators(SetMetadata(OAUTH_ROUTE, options), SetMetadata(FASTIFY_ROUTE_CONFIG, { oauth: options }));

/** RFC 6749 §5.1. */
export const NO_STORE = { 'Cache-Control': 'no-store', Pragma: 'no-cache' };

/** The options of the route that Fastify matched if it is an OAuth route, otherwise null. */
export function oauthRoute(request: object): OAuthRouteOptions | null {
  const { routeOptions } = request as { routeOptions?: { config?: { oauth?: OAuthRouteOptions } } };
  return routeOptions?.config?.oauth ?? null;
}

/** True for OAuth routes and for unknown paths below /auth, whose clients expect OAuth errors. */
export const isOAuthRequest = (request: { url: string }): boolean =>
  oauthRoute(request) !== null || isAuthPath(pathOf(request.url));

export const isAuthPath = (path: string): boolean => /^\/auth(\/|$)/.test(path);

/** The path of a request target, also of an absolute one (RFC 9112 §3.2.2). Decoded if the encoding is valid. */
export function pathOf(target: string): string {
  const path = target.replace(/^https?:\/\/[^/?]*/i, '').split('?')[0] ?? '';
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

/** The body encodings of the OAuth routes: JSON (specification 4) and form (RFC 6749). */
type BodyEncoding = 'json' | 'form';

const ENCODINGS = new Map<string, BodyEncoding>([
  ['application/json', 'json'],
  ['application/x-www-form-urlencoded', 'form'],
]);

/** The encoding in a Content-Type header. Null if it is not supported or the charset is not UTF-8. */
export const bodyEncoding = (contentType = ''): BodyEncoding | null =>
  ENCODINGS.get(contentType) ?? encodingWithParameters(contentType);

function encodingWithParameters(contentType: string): BodyEncoding | null {
  const [type = '', ...parameters] = contentType.split(';').map((part) => part.trim().toLowerCase());
  return parameters.every(isSupported) ? (ENCODINGS.get(type) ?? null) : null;
}

function isSupported(parameter: string): boolean {
  const [name, value] = parameter.split('=');
  return name !== 'charset' || /^("?)utf-?8\1$/.test(value ?? '');
}

/** The parameters of an OAuth request. All names, also `__proto__`, are own properties. */
export type Parameters = Record<string, unknown>;

/** Parses a JSON object in UTF-8. A leading byte order mark is ignored (RFC 8259 §8.1). */
export function parseJsonParameters(bytes: Uint8Array): Parameters {
  if (bytes.length === 0) throw new OAuthError('invalid_request', 'the body is missing; send a JSON object');
  let text: string, body: unknown;
  try {
    text = UTF_8.decode(bytes);
    body = JSON.parse(text);
  } catch {
    throw new OAuthError('invalid_request', 'the body is not valid JSON in UTF-8');
  }
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw new OAuthError('invalid_request', 'the body must be a JSON object');
  if (repeatsMember(text, body)) throw repeatedParameter(repeatedMember(text));
  return body as Parameters;
}

const JSON_STRING = /"[^"\\]*(?:\\.[^"\\]*)*"/g;

/**
 * Whether an object in valid JSON has a member twice. JSON.parse keeps only the last one, other parsers the first (RFC
 * 8259 §4). Every member has one colon outside of strings, so the colons are counted and compared with the members of
 * the value.
 */
export function repeatsMember(text: string, value: unknown): boolean {
  const written = text.replace(JSON_STRING, '').split(':').length - 1;
  let kept = 0;
  for (const rest = [value]; rest.length > 0;) {
    const next = rest.pop();
    if (typeof next !== 'object' || next === null) continue;
    const inner = Object.values(next) as unknown[];
    if (!Array.isArray(next)) kept += inner.length;
    for (const one of inner) rest.push(one);
  }
  return written > kept;
}

/** The name that {@link repeatsMember} found, without escapes. */
export function repeatedMember(text: string): string {
  const objects: Set<string>[] = [];
  let before = '';
  for (const [token] of text.matchAll(/"[^"\\]*(?:\\.[^"\\]*)*"|[{}:]/g)) {
    if (token === '{') objects.push(new Set());
    else if (token === '}') objects.pop();
    else if (token !== ':') before = JSON.parse(token) as string;
    else if (objects.at(-1)?.has(before)) return before;
    else objects.at(-1)?.add(before);
  }
  return '';
}

/** Parses a form. RFC 6749 §3.2 forbids duplicate parameters. */
export function parseFormParameters(bytes: Uint8Array): Parameters {
  const text = formOrThrow(() => UTF_8.decode(bytes));
  refuseJson(text);
  const pairs = formOrThrow(() => formPairs(text));
  const parameters = new Map<string, string>();
  for (const [name, value] of pairs) {
    if (parameters.has(name)) throw repeatedParameter(name);
    parameters.set(name, value);
  }
  return Object.fromEntries(parameters);
}

/** curl and other clients name every body a form unless they are given another Content-Type. */
function refuseJson(form: string): void {
  if (!/^\s*\{/.test(form)) return;
  const fault = 'the body is JSON, but Content-Type is application/x-www-form-urlencoded';
  throw new OAuthError('invalid_request', `${fault}; send Content-Type: application/json`);
}

/** The names and values of a form or of a query. Throws URIError if one is malformed. */
export function formPairs(text: string): [string, string][] {
  return text
    .split('&')
    .filter((pair) => pair !== '')
    .map((pair) => {
      const separator = pair.indexOf('=');
      if (separator < 0) return [formDecode(pair), ''];
      return [formDecode(pair.slice(0, separator)), formDecode(pair.slice(separator + 1))];
    });
}

/** Decodes application/x-www-form-urlencoded text. Throws URIError if it is malformed. */
export const formDecode = (text: string): string => decodeURIComponent(text.replaceAll('+', ' '));

const UTF_8 = new TextDecoder('utf-8', { fatal: true });

/** A name from a request that an OAuth error description may contain (RFC 6749 §5.2). */
const PLAIN_NAME = /^[\w.-]{1,64}$/;

const repeatedParameter = (name: string): OAuthError =>
  new OAuthError('invalid_request', `${PLAIN_NAME.test(name) ? name : 'a parameter'} is given more than once`);

function formOrThrow<T>(parse: () => T): T {
  try {
    return parse();
  } catch {
    throw new OAuthError('invalid_request', 'the body is not a valid form in UTF-8');
  }
}

/** Throws 415 unless the body of an OAuth request is JSON or a form, in UTF-8 and not compressed. */
export function checkMediaType(headers: IncomingHttpHeaders): void {
  const type = headers['content-type'];
  const fault =
    codingFault(headers) ??
    (bodyEncoding(type) === null ? mediaTypeFault(type, `${[...ENCODINGS.keys()].join(' or ')}, in UTF-8`) : null);
  if (fault !== null) throw new OAuthError('invalid_request', fault, 415);
}

/** What is wrong with a Content-Type, and which one to send. In ASCII, without quotes and backslashes. */
export function mediaTypeFault(given: string | undefined, wanted: string): string {
  const shown = given?.replace(/[^\x20-\x7e]|["\\]/g, '?').slice(0, 100);
  const fault = shown ? `Content-Type ${shown} is not supported` : 'the Content-Type header is missing';
  return `${fault}; send Content-Type: ${wanted}`;
}

/** Null for a body that is not compressed. */
export const codingFault = ({ 'content-encoding': coding = 'identity' }: IncomingHttpHeaders): string | null =>
  coding.toLowerCase() === 'identity'
    ? null
    : 'compressed bodies are not supported; send the body without Content-Encoding';

/** The parameters in a body that the application's own parser read. Such parsers make a list of a repeated parameter. */
export function parametersOf({ body, headers }: HttpRequest): Parameters {
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw new OAuthError('invalid_request', 'the body must be a JSON object');
  if (bodyEncoding(headers['content-type']) === 'form') checkForm(body);
  return body as Parameters;
}

function checkForm(body: object): void {
  refuseJson(Object.keys(body)[0] ?? '');
  const [repeated] = Object.entries(body).find(([, value]) => Array.isArray(value)) ?? [];
  if (repeated !== undefined) throw repeatedParameter(repeated);
}
