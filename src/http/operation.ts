import { z } from 'zod';
import type { OAuthErrorCode } from './oauth-error.js';

/** Schemas with a name of their own in the OpenAPI document. Ours alone: a host application may name its own alike. */
export const named = z.registry<{ id: string }>();

export type Security = 'basic' | 'bearer' | 'internal';

/** A 2xx answer. */
export interface Answer {
  description: string;
  /** Left out: no body. */
  schema?: z.ZodType;
  example?: unknown;
  mediaType?: string;
}

/** An error: `detail` as a client may read it, `code` where the route speaks OAuth. */
export interface Failure {
  status: number;
  detail: string;
  code?: OAuthErrorCode;
}

/** One operation of the REST interface, as the OpenAPI document tells it; kept beside the controller that answers. */
export interface Operation {
  id: string;
  method: 'get' | 'post';
  /** With `{name}` for each path parameter. */
  path: string;
  tag: 'Tokens' | 'Movie orders' | 'Webhooks' | 'Service';
  summary: string;
  description?: string;
  /** Any one of them lets a request in; none: open to everybody. */
  security: Security[];
  /** Whether errors are those of RFC 6749 rather than of RFC 9457. */
  oauth?: boolean;
  parameters?: { path?: z.ZodObject; query?: z.ZodObject; header?: z.ZodObject };
  body?: { schema: z.ZodType; example: unknown; optional?: true };
  answers: Record<number, Answer>;
  /** Beyond those that every operation of its kind can answer. */
  failures?: Failure[];
}

/** RFC 6749 §5.2. */
export const OAuthErrorBody = z
  .object({
    error: z.string().meta({ description: 'A code for programs.' }),
    error_description: z.string().meta({ description: 'For the integrator; ASCII.' }),
  })
  .describe('RFC 6749 section 5.2.')
  .register(named, { id: 'OAuthError' });

/** RFC 9457. */
export const ProblemBody = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    detail: z.string().meta({ description: 'For the integrator: what to change.' }),
    errors: z
      .array(z.object({ field: z.string(), message: z.string() }))
      .optional()
      .meta({ description: 'Faults of single fields.' }),
  })
  .describe('RFC 9457.')
  .register(named, { id: 'Problem' });

/** A time of an answer: RFC 3339 in UTC with milliseconds. */
export const moment = z.iso.datetime();
