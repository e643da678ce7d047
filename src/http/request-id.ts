import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import { type HttpRequest, rawRequest } from './exchange.js';

export const REQUEST_ID_HEADER = 'X-Request-Id';
/** The allowed format of a client's own request id. The log contains it unchanged. */
export const REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/;

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

/** Injects the request id, which is also in the log. */
export const RequestId = createParamDecorator((_: unknown, context: ExecutionContext): string =>
  idOfRequest(context.switchToHttp().getRequest<HttpRequest>()),
);
