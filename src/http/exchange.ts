import type { IncomingMessage } from 'node:http';

/** What Usher reads of a request, on Fastify and on Express alike. */
export interface HttpRequest {
  method: string;
  url: string;
  headers: IncomingMessage['headers'];
  /** The client's address, as the application's `trust proxy` setting has it. */
  ip?: string;
  /** Node's own request; Express's request is one itself. */
  raw?: IncomingMessage;
  rawHeaders?: string[];
  body?: unknown;
}

/** What Usher writes to a response: Fastify's reply and Express's response both have it. */
export interface HttpResponse {
  header(name: string, value: string): unknown;
}

export const rawHeadersOf = ({ raw, rawHeaders }: HttpRequest): string[] => raw?.rawHeaders ?? rawHeaders ?? [];

/** The pattern of the matched route, such as `/webhooks/:id`; null where no route matched. */
export function routeOf(request: HttpRequest): string | null {
  const { routeOptions, route } = request as { routeOptions?: { url?: string }; route?: { path?: string } };
  return routeOptions?.url ?? route?.path ?? null;
}
