import { z } from 'zod';
import type { OAuthErrorCode } from './oauth-error.js';

/** The named schemas of the OpenAPI document. A separate registry, because a host application may use equal names. */
export const named = z.registry<{ id: string }>();

export type Security = 'basic' | 'bearer' | 'internal';

/** A 2xx response. */
export interface Answer {
  description: string;
  /** Omitted if the response has no body. */
  schema?: z.ZodType;
  example?: unknown;
  mediaType?: string;
}

/** An error response. `code` is set on OAuth routes. */
export interface Failure {
  status: number;
  detail: string;
  code?: OAuthErrorCode;
}

/** One operation of the OpenAPI document, defined next to its controller. */
export interface Operation {
  id: string;
  method: 'get' | 'post';
  /** Path parameters are written as `{name}`. */
  path: string;
  /** Where the path begins, if that is not the public base address. */
  server?: string;
  tag: 'Tokens' | 'Authorization' | 'Movie orders' | 'Notifications' | 'Webhooks' | 'Service';
  summary: string;
  description?: string;
  /** One of these is required. Empty: no authentication. */
  security: Security[];
  /** True: errors as in RFC 6749. Otherwise: errors as in RFC 9457. */
  oauth?: boolean;
  /** True: a browser opens it. Its body is a form, and its errors are pages. */
  page?: boolean;
  parameters?: { path?: z.ZodObject; query?: z.ZodObject; header?: z.ZodObject };
  body?: { schema: z.ZodType; example: unknown; optional?: true };
  answers: Record<number, Answer>;
  /** Errors in addition to those that all operations of its kind share. */
  failures?: Failure[];
}

/** An HTML page. */
export const PageBody = z.string().register(named, { id: 'Page' });
export const PAGE_EXAMPLE = '<!doctype html>…';

/** RFC 6749 §5.2. */
export const OAuthErrorBody = z
  .object({
    error: z.string().meta({ description: 'A machine-readable error code.' }),
    error_description: z.string().meta({ description: 'An explanation for the developer, in ASCII.' }),
  })
  .describe('RFC 6749 section 5.2.')
  .register(named, { id: 'OAuthError' });

/** RFC 9457. */
export const ProblemBody = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    detail: z.string().meta({ description: 'An explanation for the developer: what to change.' }),
    errors: z
      .array(
        z.object({
          pointer: z
            .string()
            .optional()
            .meta({ description: 'The field of the body, a JSON pointer: `#/totalAmount`.' }),
          parameter: z.string().optional().meta({ description: 'The query parameter.' }),
          header: z.string().optional().meta({ description: 'The header.' }),
          message: z.string(),
        }),
      )
      .optional()
      .meta({ description: 'All fields, query parameters and headers that are wrong, each with its place.' }),
  })
  .describe('RFC 9457.')
  .register(named, { id: 'Problem' });

/** A time in a response: RFC 3339, UTC, with milliseconds. */
export const moment = z.iso.datetime();
