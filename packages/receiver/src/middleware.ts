import {
  collect,
  type IncomingRequest,
  MAX_BODY_BYTES,
  rawBodyOf,
  type ReceiverOptions,
  RefusedNotificationError,
  verifiedRequest,
} from './received-request.js';
import type { FetchHeaders, Notification } from './verify.js';

/** A middleware of Express. */
export type ExpressMiddleware = (
  request: IncomingRequest,
  response: ExpressResponse,
  next: (error?: unknown) => void,
) => void;

/** What is needed of a response of Express. */
export interface ExpressResponse {
  status(code: number): { send(body: string): unknown };
}

/**
 * A middleware of Express that lets only genuine notifications pass and sets `request.notification`. Others get 401. Put its
 * route, or `express.raw({ type: () => true })` for its path, before `express.json()`.
 */
export function expressReceiver(options: ReceiverOptions): ExpressMiddleware {
  return (request, response, next) => {
    rawBodyOf(request)
      .then((rawBody) => verifiedRequest(rawBody, request.headers, options))
      .then(
        (notification) => {
          request.notification = notification;
          next();
        },
        (error: unknown) => {
          if (!(error instanceof RefusedNotificationError)) return next(error);
          response.status(error.statusCode).send(error.message);
        },
      );
  };
}

/** What is needed of a Fastify instance. */
export interface FastifyScope {
  removeAllContentTypeParsers(): unknown;
  addContentTypeParser(
    type: string,
    options: { parseAs: 'buffer'; bodyLimit: number },
    parser: (request: unknown, body: Uint8Array | string, done: (error: Error | null, body?: unknown) => void) => void,
  ): unknown;
  addHook(name: 'preHandler', hook: (request: IncomingRequest) => Promise<void>): unknown;
}

/**
 * Prepares a scope of Fastify (the instance that a plugin gets): its routes get only genuine notifications, as
 * `request.notification`. Other requests get 401. Bodies of other scopes are parsed as before.
 */
export function fastifyReceiver(scope: FastifyScope, options: ReceiverOptions): void {
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit: MAX_BODY_BYTES }, (_request, body, done) =>
    done(null, body),
  );
  scope.addHook('preHandler', async (request) => {
    const rawBody = request.body instanceof Uint8Array ? request.body : new Uint8Array();
    request.notification = await verifiedRequest(rawBody, request.headers, options);
  });
}

/**
 * A guard of Nest, on Express and on Fastify: `@UseGuards(new NotificationGuard({ secret }))`. The route gets only genuine
 * notifications, as `request.notification`; other requests get 401. The application needs `rawBody: true`.
 */
export class NotificationGuard {
  constructor(private readonly options: ReceiverOptions) {}

  async canActivate(context: { switchToHttp(): { getRequest(): unknown } }): Promise<boolean> {
    const request = context.switchToHttp().getRequest() as IncomingRequest;
    const rawBody = await rawBodyOf(request);
    request.notification = await verifiedRequest(rawBody, request.headers, this.options);
    return true;
  }
}

/** The runtime's own `Response`, if its types are there. */
export type FetchResponse = typeof globalThis extends { Response: { prototype: infer OwnResponse } }
  ? OwnResponse
  : { readonly status: number };

interface FetchRequest {
  headers: FetchHeaders;
  body: unknown;
}

/**
 * A handler of the Fetch API: a `Request` in, a `Response` out. `onNotification` should only store the notification.
 * The answer is 200 after it has finished. If it throws, the runtime answers 500, and Usher sends the notification
 * again.
 */
export function fetchReceiver(
  options: ReceiverOptions,
  onNotification: (notification: Notification) => unknown,
): (request: FetchRequest) => Promise<FetchResponse> {
  return async ({ headers, body }) => {
    try {
      const rawBody = body === null ? new Uint8Array() : await collect(body as AsyncIterable<Uint8Array>);
      await onNotification(await verifiedRequest(rawBody, headers, options));
      return respond(200);
    } catch (error) {
      if (!(error instanceof RefusedNotificationError)) throw error;
      return respond(error.statusCode, error.message);
    }
  };
}

const respond = (status: number, text?: string): FetchResponse => new Response(text, { status }) as FetchResponse;
