import { STATUS_CODES } from 'node:http';
import {
  type Answer,
  OAuthErrorBody,
  type Operation,
  PAGE_EXAMPLE,
  PageBody,
  ProblemBody,
} from '../../http/operation.js';
import { oauthBody, problemBody, problemOf } from '../../http/error-response.js';
import { OAuthError } from '../../http/oauth-error.js';
import type { Problem } from '../../http/problem.js';
import { failuresOf } from './failures.js';
import { type JsonSchema, propertiesOf, schemaRef } from './schemas.js';

export interface Parameter {
  in: 'path' | 'query' | 'header';
  name: string;
  required: boolean;
  description?: string;
  example?: unknown;
  schema: JsonSchema;
}

export interface MediaType {
  schema: JsonSchema;
  example?: unknown;
  examples?: Record<string, { value: unknown }>;
}

export interface Response {
  description: string;
  headers?: Record<string, { description: string; schema: JsonSchema }>;
  content?: Record<string, MediaType>;
}

export interface OperationObject {
  operationId: string;
  tags: string[];
  summary: string;
  description: string | undefined;
  servers?: { url: string }[];
  security: Record<string, string[]>[];
  parameters: Parameter[];
  requestBody?: { required: boolean; content: Record<string, MediaType> };
  responses: Record<string, Response>;
}

/** The OpenAPI operation object of an operation. */
export function operationObject(operation: Operation): OperationObject {
  const { id, tag, summary, description, server, security, body, answers, oauth, page } = operation;
  const successes = Object.entries(answers).map(([status, answer]) => [status, successResponse(answer, oauth)]);
  return {
    operationId: id,
    tags: [tag],
    summary,
    description,
    ...(server !== undefined && { servers: [{ url: server }] }),
    security: security.map((scheme) => ({ [scheme]: [] })),
    parameters: parametersOf(operation),
    ...(body && { requestBody: { required: !body.optional, content: requestContent(body, { oauth, page }) } }),
    responses: { ...(Object.fromEntries(successes) as Record<string, Response>), ...failureResponses(operation) },
  };
}

export function parametersOf({ parameters = {} }: Pick<Operation, 'parameters'>): Parameter[] {
  const locations = [
    ['path', parameters.path],
    ['query', parameters.query],
    ['header', parameters.header],
  ] as const;
  return locations.flatMap(([location, schema]) =>
    schema ? propertiesOf(schema).map((property) => parameter(location, property)) : [],
  );
}

function parameter(location: Parameter['in'], property: ReturnType<typeof propertiesOf>[number]): Parameter {
  const { name, required, schema } = property;
  const { description, example, ...rest } = schema;
  return { in: location, name, required, description, ...(example !== undefined && { example }), schema: rest };
}

/** The specification has JSON bodies; OAuth endpoints also accept form bodies (RFC 6749). */
function requestContent(
  { schema, example }: NonNullable<Operation['body']>,
  { oauth = false, page = false }: { oauth: boolean | undefined; page: boolean | undefined },
): Record<string, MediaType> {
  const content = { schema: schemaRef(schema), example };
  if (page) return { 'application/x-www-form-urlencoded': content };
  return { 'application/json': content, ...(oauth && { 'application/x-www-form-urlencoded': content }) };
}

function successResponse({ description, schema, example, mediaType }: Answer, oauth = false): Response {
  return {
    description,
    headers: { ...requestIdHeader(), ...(oauth && { 'Cache-Control': header('Always `no-store`.') }) },
    ...(schema && {
      content: { [mediaType]: { schema: schemaRef(schema), ...(example !== undefined && { example }) } },
    }),
  };
}

function failureResponses(operation: Operation): Record<string, Response> {
  const failures = failuresOf(operation);
  const statuses = [...new Set(failures.map((failure) => failure.getStatus()))].sort((one, other) => one - other);
  const responses = statuses.map(
    (status) => [status, failures.filter((failure) => failure.getStatus() === status)] as const,
  );
  return Object.fromEntries(
    responses.map(([status, examples]) => [status, failureResponse(status, examples, operation.page)]),
  );
}

function failureResponse(status: number, failures: (Problem | OAuthError)[], page = false): Response {
  const isOAuth = failures.some((failure) => failure instanceof OAuthError);
  const schema = schemaRef(isOAuth ? OAuthErrorBody : ProblemBody);
  const examples = Object.fromEntries(
    failures.map((failure, index) => [`example${index + 1}`, { value: bodyOf(failure) }]),
  );
  if (page) return pageFailure(status, failures);
  return {
    description: STATUS_CODES[status] ?? '',
    headers: { ...requestIdHeader(), ...headersOf(status) },
    content: { [isOAuth ? 'application/json' : 'application/problem+json']: { schema, examples } },
  };
}

/** A page says in words what is wrong. */
const pageFailure = (status: number, failures: (Problem | OAuthError)[]): Response => ({
  description: failures
    .map(problemOf)
    .map(({ title, detail }) => `${title}: ${detail}`)
    .join(' '),
  headers: { ...requestIdHeader(), ...headersOf(status) },
  content: { 'text/html': { schema: schemaRef(PageBody), example: PAGE_EXAMPLE } },
});

const bodyOf = (failure: Problem | OAuthError): object =>
  failure instanceof OAuthError ? oauthBody(failure.code, failure.description) : problemBody(failure);

const requestIdHeader = () => ({
  'X-Request-Id': header(
    'The request’s `X-Request-Id` if it has 1 to 64 characters of A-Z, a-z, 0-9, `.`, `_` and `-`, else a new id.',
  ),
});

function headersOf(status: number): Response['headers'] {
  if (status === 401) return { 'WWW-Authenticate': header('The scheme to authenticate with.') };
  if (status === 429 || status === 503) return { 'Retry-After': header('Seconds to wait.') };
  return {};
}

const header = (description: string) => ({ description, schema: { type: 'string' as const } });
