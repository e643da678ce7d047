import { STATUS_CODES } from 'node:http';
import { type CanActivate, type ExecutionContext, HttpException, SetMetadata } from '@nestjs/common';
import { z } from 'zod';
import { remedyFor } from '../values/spelling.js';

const RETRY_AFTER_SECONDS = '5';

/** The title of the problems of each status, also of the section about them in docs/errors.md. */
export const PROBLEM_TITLES: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  409: 'Conflict',
  413: 'Content Too Large',
  414: 'URI Too Long',
  415: 'Unsupported Media Type',
  417: 'Expectation Failed',
  421: 'Misdirected Request',
  422: 'Unprocessable Content',
  429: 'Too Many Requests',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
};

/**
 * An error response as RFC 9457 problem details. `detail` is text for the integrator. It extends HttpException so that
 * an embedding application without Usher's error filter can handle it too.
 */
export class Problem extends HttpException {
  constructor(
    status: number,
    readonly title: string,
    readonly detail: string,
    readonly errors?: FieldError[],
  ) {
    super({ statusCode: status, error: title, message: detail, ...(errors && { errors }) }, status);
    this.message = `${title}: ${detail}`;
  }

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

export const titleOf = (status: number): string => PROBLEM_TITLES[status] ?? STATUS_CODES[status] ?? 'Error';

/** A problem with the usual title of its status. */
export const standardProblem = (status: number, detail: string, errors?: FieldError[]): Problem =>
  new Problem(status, titleOf(status), detail, errors);

const problemKind = (status: number) => (detail: string) => standardProblem(status, detail);

export const badRequest = problemKind(400);
export const forbidden = problemKind(403);
export const notFound = problemKind(404);
export const conflict = problemKind(409);
export const unprocessable = problemKind(422);

/** `waitSeconds` is the Retry-After header. */
export const tooManyRequests = (detail: string, waitSeconds: number): Problem =>
  standardProblem(429, detail).with({ 'Retry-After': String(waitSeconds) });

/** Part of the service is unavailable. `detail` must not reveal the cause. */
export const unavailable = (detail = 'the service is busy or starting; try again'): Problem =>
  standardProblem(503, detail).with({ 'Retry-After': RETRY_AFTER_SECONDS });

/** `challenge` is the WWW-Authenticate header, which a 401 requires. */
export const unauthorized = (detail: string, challenge: string): Problem =>
  standardProblem(401, detail).with({ 'WWW-Authenticate': challenge });

/** For `catch`: a problem concerns one request alone. Another error may have made the transaction unusable. */
export function nullForProblem(error: unknown): null {
  if (error instanceof Problem) return null;
  throw error;
}

/** With `async`, which zod would else add to a copy for each input. */
const PARSING = { error: wording, reportInput: true, async: false };

/** Where the input of {@link validated} comes from. */
type Place = 'body' | 'query';

/**
 * Parses `input` with the schema. Throws a 400 that lists every invalid, missing and unknown field, and what `also` finds
 * in the unchecked fields of the input. The wording of a library never reaches the caller.
 */
export function validated<T>(
  schema: z.ZodType<T>,
  input: unknown,
  place: Place = 'body',
  also: (input: Record<string, unknown>) => FieldError[] = () => [],
): T {
  const result = schema.safeParse(input, PARSING);
  const given = Object(input) as Record<string, unknown>;
  const issues = result.success ? [] : result.error.issues.flatMap((issue) => fieldErrors(issue, schema, place, given));
  const errors = [...issues, ...also(given)];
  if (result.success && errors.length === 0) return result.data;
  throw invalidFields(errors);
}

/** One field, query parameter or header that is wrong. One of the first three says where it is. */
export interface FieldError {
  /** The field of the body as a JSON pointer (RFC 6901), such as `#/totalAmount`; the whole body is `#`. */
  pointer?: string;
  parameter?: string;
  header?: string;
  message: string;
}

export function fieldError(place: Place, path: readonly PropertyKey[], message: string): FieldError {
  if (place === 'query') return { parameter: path.join('.'), message };
  return {
    pointer: ['#', ...path.map((part) => String(part).replaceAll('~', '~0').replaceAll('/', '~1'))].join('/'),
    message,
  };
}

/** 400, with all errors in `errors` and in `detail`. */
export const invalidFields = (errors: FieldError[]): Problem =>
  standardProblem(400, errors.map(sentence).join('; '), errors);

function sentence({ pointer = '#', parameter, header, message }: FieldError): string {
  if (header !== undefined) return `${header} ${message}`;
  if (parameter === undefined && pointer === '#') return `the body ${message}`;
  const name = parameter ?? pointer.slice(2).replaceAll('/', '.').replaceAll('~1', '/').replaceAll('~0', '~');
  return `${name || '""'}: ${message}`;
}

function fieldErrors(
  issue: z.core.$ZodIssue,
  schema: z.ZodType,
  place: Place,
  given: Record<string, unknown>,
): FieldError[] {
  const { path } = issue;
  const [name] = path;
  // Servers make a list of the values of a repeated query parameter.
  if (place === 'query' && name !== undefined && Array.isArray(given[String(name)]))
    return [fieldError(place, [name], 'is given more than once')];
  if (issue.code !== 'unrecognized_keys') return [fieldError(place, path, messageOf(issue))];
  const { shape = {} } = schema as { shape?: object };
  const known = Object.keys(shape);
  return issue.keys.map((key) => fieldError(place, [...path, key], unknownName(place, key, known)));
}

function unknownName(place: Place, name: string, known: string[]): string {
  if (known.length === 0) return 'is not known; this route takes no fields';
  return `is not a known ${place === 'query' ? 'parameter' : 'field'}; ${remedyFor(name, known)}`;
}

function messageOf({ message, input, path }: z.core.$ZodIssue): string {
  if (input !== undefined) return message;
  return path.length === 0
    ? 'is missing; send a JSON object with Content-Type: application/json'
    : `is missing; it ${message}`;
}

/**
 * A number in a query, in decimal digits: `Number()` also reads 0x10, 1e1 and an empty text. `without`: what a missing
 * number means.
 */
export function wholeNumber<T extends z.ZodType>(least: number, most: number, without: (number: z.ZodInt) => T) {
  const wanted = `must be a whole number from ${least} to ${most}`;
  return z.preprocess(
    (given) => (given === undefined ? given : /^\d{1,15}$/.test(String(given)) ? Number(given) : NaN),
    without(z.int(wanted).min(least, wanted).max(most, wanted)),
  );
}

const TYPES: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  object: 'a JSON object',
  record: 'a JSON object',
  array: 'a list',
};

/** What is wrong where the schema itself has no message. */
function wording(issue: z.core.$ZodRawIssue): string {
  if (issue.code === 'invalid_type') return `must be ${TYPES[issue.expected] ?? 'of another type'}`;
  if (issue.code === 'invalid_value')
    return `must be ${issue.values.length > 1 ? 'one of ' : ''}${issue.values.join(', ')}`;
  if (issue.code === 'too_small') return limited(issue.origin, `at least ${issue.minimum}`);
  if (issue.code === 'too_big') return limited(issue.origin, `at most ${issue.maximum}`);
  return 'has an invalid value';
}

function limited(origin: string, limit: string): string {
  const unit = { string: 'characters', array: 'entries' }[origin];
  return unit === undefined ? `must be ${limit}` : `must have ${limit} ${unit}`;
}

const TAKES_QUERY = 'usher:takes-query';

/** Marks a route that checks its query parameters itself. */
export const TakesQuery = (): MethodDecorator => SetMetadata(TAKES_QUERY, true);

/** Refuses query parameters on routes that take none, so that a parameter in the wrong place is not ignored. */
class QueryGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    if (Reflect.getMetadata(TAKES_QUERY, context.getHandler())) return true;
    this.check(context.switchToHttp().getRequest<{ query?: object }>().query ?? {});
    return true;
  }

  check(query: object): void {
    const names = Object.keys(query);
    if (names.length === 0) return;
    throw invalidFields(names.map((name) => fieldError('query', [name], 'is not known; this route takes no query')));
  }
}

/** The {@link QueryGuard} has no dependencies, so all controllers share one. */
export const KNOWN_QUERY = new QueryGuard();
