import { oauthBody, problemBody, problemOf } from '../../http/error-response.js';
import { OAuthError } from '../../http/oauth-error.js';
import {
  type Answer,
  NOT_STORED,
  OAuthErrorBody,
  type Operation,
  PAGE_EXAMPLE,
  PageBody,
  ProblemBody,
  type Security,
} from '../../http/operation.js';
import { type Problem, titleOf } from '../../http/problem.js';
import { failuresOf, type Service } from './failures.js';
import { type JsonSchema, parametersOf, schemaRef } from './schemas.js';

export interface MediaType {
  schema: JsonSchema;
  example?: unknown;
  examples?: Record<string, { value: unknown }>;
}

interface Response {
  description: string;
  headers?: Record<string, { description: string; schema: JsonSchema }>;
  content?: Record<string, MediaType>;
}

export type OperationObject = ReturnType<typeof operationObject>;

export function operationObject(operation: Operation, service: Service) {
  const { answers, oauth, page } = operation;
  const always = oauth || page ? NOT_STORED : {};
  const responses: Record<string, Response> = {};
  for (const [status, answer] of Object.entries(answers)) responses[status] = successResponse(answer, always);
  const failures = failuresOf(operation, service);
  for (const status of failures.map((failure) => failure.getStatus())) {
    const alike = failures.filter((failure) => failure.getStatus() === status);
    responses[status] ??= failureResponse(status, alike, { page, always, guides: service.guidesUrl });
  }
  return { ...requestObject(operation), responses };
}

/** The same without the responses. */
export function requestObject(operation: Omit<Operation, 'method' | 'path' | 'answers'>) {
  const { id, tag, summary, description, notes, server, security, body } = operation;
  return {
    operationId: id,
    tags: [tag],
    summary,
    description: notes ? [description, ...security.map((scheme) => notes[scheme])].join(' ') : description,
    ...(server !== undefined && { servers: [{ url: server }] }),
    security: security.map((scheme) => ({ [scheme]: [] })),
    parameters: parametersOf(operation),
    requestBody: body && { required: !body.optional, content: requestContent(body, operation) },
  };
}

/** A curl command that takes the credentials from shell variables. Pages have none, because browsers open them. */
export function curlSample(operation: Operation, base: string) {
  const { method, path, server, security, body, page } = operation;
  if (page) return {};
  const given = parametersOf(operation).filter(({ required }) => required);
  const all = (place: string) => given.filter((one) => one.in === place);
  const url = all('path').reduce((text, { name, example }) => text.replace(`{${name}}`, String(example)), path);
  const query = all('query').map(({ name, example }) => `${name}=${String(example)}`);
  const options = [
    `-X ${method.toUpperCase()} "${server ?? base}${[url, ...query].join('?')}"`,
    ...security.slice(0, 1).map((scheme) => CREDENTIALS[scheme]),
    ...all('header').map(({ name, example }) => `-H '${name}: ${String(example)}'`),
    ...(body ? [`-H 'Content-Type: application/json'`, `-d '${JSON.stringify(body.example)}'`] : []),
  ];
  return { 'x-codeSamples': [{ lang: 'shell', label: 'curl', source: `curl ${options.join(' \\\n  ')}` }] };
}

const BEARER = '-H "Authorization: Bearer $TOKEN"';
const CREDENTIALS: Record<Security, string> = {
  basic: '-u "$CLIENT_ID:$CLIENT_SECRET"',
  oauth2: BEARER,
  bearer: BEARER,
  internal: '-u "$INTERNAL_USER:$INTERNAL_PASSWORD"',
};

/** The specification has JSON bodies; OAuth endpoints also accept form bodies (RFC 6749). */
function requestContent(
  { schema, example }: NonNullable<Operation['body']>,
  { oauth, page }: Pick<Operation, 'oauth' | 'page'>,
): Record<string, MediaType> {
  const content = { schema: schemaRef(schema), example };
  return {
    ...(!page && { 'application/json': content }),
    ...((oauth || page) && { 'application/x-www-form-urlencoded': content }),
  };
}

/** Headers, and what they mean. */
type Meanings = Record<string, string>;

const header = (description: string) => ({ description, schema: { type: 'string' as const } });

const REQUEST_ID = {
  'X-Request-Id': header(
    'The request’s `X-Request-Id` if it has 1 to 64 characters of A-Z, a-z, 0-9, `.`, `_` and `-`, else a new id.',
  ),
};
const headersOf = (meanings: Meanings) => ({
  ...REQUEST_ID,
  ...Object.fromEntries(Object.entries(meanings).map(([name, meaning]) => [name, header(meaning)])),
});

/** The headers that an error can have. */
const ERROR_HEADERS: Meanings = {
  'WWW-Authenticate': 'The scheme to authenticate with.',
  'Retry-After': 'Seconds to wait.',
};

const successResponse = ({ description, schema, example, mediaType, headers }: Answer, always: Meanings): Response => ({
  description,
  headers: headersOf({ ...always, ...headers }),
  content: schema && { [mediaType]: { schema: schemaRef(schema), example } },
});

function failureResponse(
  status: number,
  failures: (Problem | OAuthError)[],
  { page, always, guides }: { page: boolean; always: Meanings; guides: string | null },
): Response {
  const own = failures.flatMap((failure) => Object.keys(problemOf(failure).headers));
  const named = Object.entries(ERROR_HEADERS).filter(([name]) => own.includes(name));
  const headers = headersOf({ ...always, ...Object.fromEntries(named) });
  // A page says in words what is wrong.
  if (page)
    return {
      description: failures.map((failure) => problemOf(failure).message).join(' '),
      headers,
      content: { 'text/html': { schema: schemaRef(PageBody), example: PAGE_EXAMPLE } },
    };
  const isOAuth = failures.some((failure) => failure instanceof OAuthError);
  const schema = schemaRef(isOAuth ? OAuthErrorBody : ProblemBody);
  const examples = Object.fromEntries(
    failures.map((failure, index) => [`example${index + 1}`, { value: errorBody(failure, guides) }]),
  );
  return {
    description: titleOf(status),
    headers,
    content: { [isOAuth ? 'application/json' : 'application/problem+json']: { schema, examples } },
  };
}

const errorBody = (error: Problem | OAuthError, guides: string | null): object =>
  error instanceof OAuthError ? oauthBody(error.code, error.description, guides) : problemBody(error, guides);
