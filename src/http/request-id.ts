import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';

export const REQUEST_ID_HEADER = 'X-Request-Id';
/** The allowed format of a client's own request id. The log contains it unchanged. */
export const REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/;

/** The X-Request-Id header if its format is allowed, otherwise a new id. */
export function requestIdOf({ headers }: IncomingMessage): string {
  const given = headers['x-request-id'];
  return typeof given === 'string' && REQUEST_ID.test(given) ? given : newRequestId();
}

export const newRequestId = (): string => randomUUID();

/** Injects the request id, which is also in the log and in the response header. */
export const RequestId = createParamDecorator((_: unknown, context: ExecutionContext): string => {
  return context.switchToHttp().getRequest<FastifyRequest>().id;
});
