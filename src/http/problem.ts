import { HttpException } from '@nestjs/common';
import type { z } from 'zod';

const RETRY_AFTER_S = '5';

/**
 * An error for the client as RFC 9457 problem details. `detail` is meant to be read by the integrator. In an application
 * that lacks Usher's error filter it is one of Nest's own kind, to Nest and to the application's filters.
 */
export class Problem extends HttpException {
  constructor(
    status: number,
    readonly title: string,
    readonly detail: string,
    /** Faults of single fields: where, and what is wrong. */
    readonly errors?: { field: string; message: string }[],
  ) {
    super({ statusCode: status, error: title, message: detail, ...(errors && { errors }) }, status);
    this.message = `${title}: ${detail}`;
  }

  /** Headers of the response. */
  readonly headers: Record<string, string> = {};

  with(headers: Record<string, string>): this {
    Object.assign(this.headers, headers);
    return this;
  }
}

export const notFound = (what: string): Problem => new Problem(404, 'Not Found', what);
export const conflict = (why: string): Problem => new Problem(409, 'Conflict', why);
export const unprocessable = (why: string): Problem => new Problem(422, 'Unprocessable Content', why);

/** Something of ours is away; `why` says what, and no more. */
export const unavailable = (why = 'the service is busy or starting; try again'): Problem =>
  new Problem(503, 'Service Unavailable', why).with({ 'Retry-After': RETRY_AFTER_S });

/** `challenge` is the WWW-Authenticate header that a 401 owes. */
export const unauthorized = (why: string, challenge: string): Problem =>
  new Problem(401, 'Unauthorized', why).with({ 'WWW-Authenticate': challenge });

/** `input` as the schema has it, or a 400 that names every field at fault. */
export function validated<T>(schema: z.ZodType<T>, input: unknown): T {
  const result = schema.safeParse(input);
  if (result.success) return result.data;
  const errors = result.error.issues.map(({ path, message }) => ({ field: path.join('.') || 'body', message }));
  throw new Problem(400, 'Bad Request', errors.map(({ field, message }) => `${field}: ${message}`).join('; '), errors);
}
