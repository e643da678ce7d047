import type { IncomingMessage } from 'node:http';
import { pipeline, type Readable, type Writable } from 'node:stream';

/** What Usher reads of a request, on Fastify and on Express alike. */
export interface HttpRequest {
  method: string;
  url: string;
  /** The URL as the client sent it, where the framework changes `url`. */
  originalUrl?: string;
  headers: IncomingMessage['headers'];
  /** The client's address, as the application's `trust proxy` setting has it. */
  ip?: string;
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

/** How often a request has a header; `name` is in lower case. Node's own `headers` keep only one of some. */
export function countHeader({ rawHeaders }: Pick<IncomingMessage, 'rawHeaders'>, name: string): number {
  let count = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const given = rawHeaders[index] as string;
    if (given.length === name.length && given.toLowerCase() === name) count += 1;
  }
  return count;
}

/** The pattern of the matched route, such as `/webhooks/:id`; null where no route matched. */
export function routeOf(request: object): string | null {
  const { routeOptions, route } = request as { routeOptions?: { url?: string }; route?: { path?: string } };
  return routeOptions?.url ?? route?.path ?? null;
}

export function setHeaders(response: HttpResponse, headers: Record<string, string>): void {
  for (const [name, value] of Object.entries(headers)) response.header(name, value);
}

/** Sends a stream as the body. If the stream fails, the connection is cut, so that the client notices that it is incomplete. */
export function sendStream(response: HttpResponse, body: Readable): void {
  // Fastify's reply takes the stream; Express's response is Node's own.
  if ('raw' in response) response.send(body);
  else pipeline(body, response as unknown as Writable, () => undefined);
}

/** In front of the digits of a `bigint`, where no other text begins: JSON would escape it. */
const BIGINT = '\u0000bigint ';
const BIGINT_TEXT = /"\\u0000bigint (\d+)"/g;

/** JSON with every digit of a `bigint`, which JSON.stringify() refuses. */
export function exactJson(value: unknown, indent?: number): string {
  const marked = (_: string, member: unknown): unknown => (typeof member === 'bigint' ? `${BIGINT}${member}` : member);
  return JSON.stringify(value, marked, indent).replace(BIGINT_TEXT, '$1');
}
