import type { IncomingMessage } from 'node:http';

/** What Usher reads of a request, on Fastify and on Express alike. */
export interface HttpRequest {
  method: string;
  url: string;
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
