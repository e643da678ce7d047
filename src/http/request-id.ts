import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';

export const REQUEST_ID_HEADER = 'X-Request-Id';
/** What a caller may call its request. It goes into the log as it is. */
export const REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/;

/** The caller's own id of its request where it is a sane one, else a new one. */
export function requestIdOf({ headers }: IncomingMessage): string {
  const given = headers['x-request-id'];
  return typeof given === 'string' && REQUEST_ID.test(given) ? given : newRequestId();
}

export const newRequestId = (): string => randomUUID();

/** Injects the id of the request, as it stands in the log and in the answer's header. */
export const RequestId = createParamDecorator((_: unknown, context: ExecutionContext): string => {
  return context.switchToHttp().getRequest<FastifyRequest>().id;
});
