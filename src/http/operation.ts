import { RequestMethod, type Type } from '@nestjs/common';
import { GUARDS_METADATA, METHOD_METADATA, PATH_METADATA } from '@nestjs/common/constants.js';
import { z } from 'zod';
import type { OAuthError } from './oauth-error.js';
import { FASTIFY_ROUTE_CONFIG, OAUTH_ROUTE, type OAuthRouteOptions } from './oauth-route.js';
import type { Problem } from './problem.js';

/** The named schemas of the OpenAPI document. A separate registry, because a host application may use equal names. */
export const NAMES = z.registry<{ id: string }>();

export function named<T extends z.ZodType>(id: string, schema: T, description?: string): T {
  const described = description === undefined ? schema : schema.describe(description);
  NAMES.add(described, { id });
  return described;
}

export type Security = 'basic' | 'oauth2' | 'bearer' | 'internal';

/** A 2xx response. Without a schema it has no body. `headers`: what its own headers mean. */
export const answer = <T extends z.ZodType>(
  description: string,
  schema?: T,
  example?: z.input<T>,
  { mediaType = 'application/json', headers = {} }: { mediaType?: string; headers?: Record<string, string> } = {},
) => ({ description, schema, example, mediaType, headers });
export type Answer = ReturnType<typeof answer>;

/** The header of an answer that no cache may store. */
export const NOT_STORED = { 'Cache-Control': 'Always `no-store`.' };

/** An error response: the error that the code throws, or a call that throws it. */
export type Failure = Problem | OAuthError | (() => unknown);

/** What an operation has from its route. */
interface Route {
  /** Left out for the metadata, which no controller serves. */
  controller?: Type;
  /** The method of the controller. */
  handler?: object;
  method: 'get' | 'post' | 'put';
  /** Path parameters are written as `{name}`. */
  path: string;
  /** One of these is required. Empty: no authentication. */
  security: Security[];
  /** True: errors as in RFC 6749. Otherwise: errors as in RFC 9457. */
  oauth: boolean;
  /** True: a browser opens it. Its body is a form, and its errors are pages. */
  page: boolean;
}

export interface Operation extends Route {
  id: string;
  /** Where the path begins, if that is not the public base address. */
  server?: string;
  tag: 'Tokens' | 'Authorization' | 'Client' | 'Movie orders' | 'Notifications' | 'Webhooks' | 'Service';
  summary: string;
  description?: string;
  /** Sentences for those who use a scheme. They follow the description in a document that has this scheme. */
  notes?: Partial<Record<Security, string>>;
  parameters?: { path?: z.ZodObject; query?: z.ZodObject; header?: z.ZodObject };
  body?: { schema: z.ZodType; example: unknown; optional?: true };
  answers: Record<number, Answer>;
  /** Errors in addition to those that all operations of its kind share. */
  failures?: Failure[];
}

type Description = Omit<Operation, keyof Route | 'tag'>;

/**
 * Describes the routes of a controller, by its methods. The HTTP method, path, guards and kind of errors are read from
 * the controller.
 */
export function operations<T extends object>(
  tag: Operation['tag'],
  controller: Type<T>,
  descriptions: { [Handler in keyof T]?: Description },
): Operation[] {
  // A guard names in its static property `security` what it requires.
  const guards = metadata<{ security?: Security | Security[] }[]>(GUARDS_METADATA, controller) ?? [];
  const described = Object.entries(descriptions) as [handler: string, description: Description][];
  return described.map(([name, description]) => {
    const handler = (controller.prototype as Record<string, object>)[name] as object;
    const parts = [metadata<string>(PATH_METADATA, controller), metadata<string>(PATH_METADATA, handler)].join('/');
    const oauth = metadata<OAuthRouteOptions>(OAUTH_ROUTE, handler);
    const method = RequestMethod[metadata<RequestMethod>(METHOD_METADATA, handler) ?? RequestMethod.GET];
    return {
      tag,
      controller,
      handler,
      method: method.toLowerCase() as Route['method'],
      path: `/${parts.split('/').filter(Boolean).join('/')}`.replace(/:(\w+)/g, '{$1}'),
      security: [
        ...guards.flatMap(({ security }) => security ?? []),
        ...(oauth?.internal ? ['internal' as const] : []),
      ],
      oauth: oauth !== undefined,
      page: metadata<{ page?: boolean }>(FASTIFY_ROUTE_CONFIG, handler)?.page ?? false,
      ...description,
    };
  });
}

const metadata = <V>(key: string, of: object): V | undefined => Reflect.getMetadata(key, of) as V | undefined;

export const PageBody = named('Page', z.string());
export const PAGE_EXAMPLE = '<!doctype html>…';
export const pageAnswer = (description: string) =>
  answer(description, PageBody, PAGE_EXAMPLE, { mediaType: 'text/html' });
export const redirectAnswer = (description: string) =>
  answer(description, undefined, undefined, { headers: { Location: 'Where the browser goes.' } });

/** RFC 6749 §5.2. */
export const OAuthErrorBody = named(
  'OAuthError',
  z.object({
    error: z.string().describe('A machine-readable error code.'),
    error_description: z.string().describe('An explanation for the developer, in ASCII.'),
    error_uri: z.string().optional().describe('The page about this error.'),
  }),
  'RFC 6749 section 5.2.',
);

/** RFC 9457. */
export const ProblemBody = named(
  'Problem',
  z.object({
    type: z.string().describe('The page about this problem; `about:blank` where none is served.'),
    title: z.string(),
    status: z.int(),
    detail: z.string().describe('An explanation for the developer: what to change.'),
    errors: z
      .array(
        z.object({
          pointer: z.string().optional().describe('The field of the body, a JSON pointer: `#/totalAmount`.'),
          parameter: z.string().optional().describe('The query parameter.'),
          header: z.string().optional().describe('The header.'),
          message: z.string(),
        }),
      )
      .optional()
      .describe('All fields, query parameters and headers that are wrong, each with its place.'),
    test: z
      .record(z.string(), z.unknown())
      .optional()
      .describe('The result of a sample that was not accepted, like that of `POST /webhooks/test`.'),
  }),
  'RFC 9457.',
);

/** What follows the `data` of a page. */
export const PageEnd = {
  nextCursor: z.string().nullable().describe('Send it as `cursor` to get the next page. Null on the last page.'),
  hasMore: z.boolean().describe('False on the last page.'),
};

/** A page of rows that were read with one more than `limit`, and the cursor of the next page. */
export function pageOf<T>(found: T[], limit: number, cursorOf: (last: T) => string) {
  const [last] = found.slice(limit - 1, limit);
  const hasMore = found.length > limit;
  return { data: found.slice(0, limit), nextCursor: hasMore && last ? cursorOf(last) : null, hasMore };
}

/** A time in a response: RFC 3339, UTC, with milliseconds. */
export const moment = z.iso.datetime();
