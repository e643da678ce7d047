import { HttpException } from '@nestjs/common';
import type { z } from 'zod';
import { nearestName } from '../values/spelling.js';

const RETRY_AFTER_SECONDS = '5';

/**
 * An error response as RFC 9457 problem details. `detail` is text for the integrator. It extends HttpException so that
 * an embedding application without Usher's error filter can handle it too.
 */
export class Problem extends HttpException {
  constructor(
    status: number,
    readonly title: string,
    readonly detail: string,
    /** Errors of single fields. */
    readonly errors?: { field: string; message: string }[],
  ) {
    super({ statusCode: status, error: title, message: detail, ...(errors && { errors }) }, status);
    this.message = `${title}: ${detail}`;
  }

  /** Headers of the response. */
  readonly headers: Record<string, string> = {};

  /** Further members of the body (RFC 9457 §3.2). */
  readonly members: Record<string, unknown> = {};

  /** Adds members to the body. */
  including(members: Record<string, unknown>): this {
    Object.assign(this.members, members);
    return this;
  }

  /** Adds headers to the response. */
  with(headers: Record<string, string>): this {
    Object.assign(this.headers, headers);
    return this;
  }
}

export const notFound = (detail: string): Problem => new Problem(404, 'Not Found', detail);
export const conflict = (detail: string): Problem => new Problem(409, 'Conflict', detail);
export const unprocessable = (detail: string): Problem => new Problem(422, 'Unprocessable Content', detail);

/** `waitSeconds` is the Retry-After header. */
export const tooManyRequests = (detail: string, waitSeconds: number): Problem =>
  new Problem(429, 'Too Many Requests', detail).with({ 'Retry-After': String(waitSeconds) });

/** Part of the service is unavailable. `detail` must not reveal the cause. */
export const unavailable = (detail = 'the service is busy or starting; try again'): Problem =>
  new Problem(503, 'Service Unavailable', detail).with({ 'Retry-After': RETRY_AFTER_SECONDS });

/** `challenge` is the WWW-Authenticate header, which a 401 requires. */
export const unauthorized = (detail: string, challenge: string): Problem =>
  new Problem(401, 'Unauthorized', detail).with({ 'WWW-Authenticate': challenge });

/** Parses `input` with the schema. Throws a 400 that lists every invalid and every unknown field. */
export function validated<T>(schema: z.ZodType<T>, input: unknown): T {
  const result = schema.safeParse(input);
  if (result.success) return result.data;
  const errors = result.error.issues.flatMap((issue) => fieldErrors(issue, knownFields(schema)));
  throw new Problem(400, 'Bad Request', errors.map(({ field, message }) => `${field}: ${message}`).join('; '), errors);
}

type FieldError = { field: string; message: string };

function fieldErrors(issue: z.core.$ZodIssue, known: string[]): FieldError[] {
  const { path, message } = issue;
  if (issue.code !== 'unrecognized_keys') return [{ field: path.join('.') || 'body', message }];
  return issue.keys.map((key) => {
    const nearest = nearestName(key, known);
    const remedy = nearest ? `did you mean ${nearest}?` : `use one of ${known.join(', ')}`;
    return { field: [...path, key].join('.'), message: `is not a known field; ${remedy}` };
  });
}

const knownFields = (schema: z.ZodType): string[] =>
  Object.keys((schema as { shape?: Record<string, unknown> }).shape ?? {});
