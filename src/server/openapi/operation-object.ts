import { noIssuer } from '../../auth/authorize/authorization-site.js';
import { tooManyInvalidTokens } from '../../auth/bearer/access-tokens.js';
import { invalidToken, knowsOwners, ownerRefused, tokenMissing } from '../../auth/bearer/bearer.guard.js';
import { invalidClient, slowDown } from '../../auth/client-authentication/client-authentication.js';
import { refusal, tooManyFailures } from '../../auth/client-authentication/internal.guard.js';
import { generateToken } from '../../auth/tokens/token.js';
import { oauthBody, oauthCodeOf, problemBody, problemOf } from '../../http/error-response.js';
import { severalHeaders, SINGLE_HEADERS } from '../../http/exchange.js';
import { OAuthError } from '../../http/oauth-error.js';
import { checkMediaType, parseFormParameters, parseJsonParameters } from '../../http/oauth-route.js';
import {
  type Answer,
  type Failure,
  OAuthErrorBody,
  type Operation,
  PAGE_EXAMPLE,
  PageBody,
  ProblemBody,
  type Security,
} from '../../http/operation.js';
import { refused } from '../../http/pages/form-tokens.js';
import { KNOWN_QUERY, Problem, titleOf, unavailable } from '../../http/problem.js';
import type { ResolvedOptions } from '../../usher.options.js';
import type { Environment } from '../../values/identifier.js';
import { hostMissing, tooManyAnonymous } from '../connections.js';
import { FORM_ROUTE, invalidJson, repeatedField, unsupportedMediaType } from '../request-bodies.js';
import { urlMalformed, urlTooLong } from '../unreadable-requests.js';
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

/** What the examples show of the service. */
export type Service = Pick<ResolvedOptions, 'environment' | 'guidesUrl'>;

export type OperationObject = ReturnType<typeof operationObject>;

export function operationObject(operation: Operation, service: Service) {
  const { answers, oauth, page } = operation;
  const responses: Record<string, Response> = {};
  for (const [status, answer] of Object.entries(answers)) responses[status] = successResponse(answer, oauth);
  const failures = failuresOf(operation, service);
  for (const status of failures.map((failure) => failure.getStatus())) {
    const alike = failures.filter((failure) => failure.getStatus() === status);
    responses[status] ??= failureResponse(status, alike, page, service.guidesUrl);
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

const header = (description: string) => ({ description, schema: { type: 'string' as const } });

const REQUEST_ID = {
  'X-Request-Id': header(
    'The request’s `X-Request-Id` if it has 1 to 64 characters of A-Z, a-z, 0-9, `.`, `_` and `-`, else a new id.',
  ),
};
const RETRY_AFTER = { 'Retry-After': header('Seconds to wait.') };

/** The further headers of an error, by its status. */
const ERROR_HEADERS: Record<number, Response['headers']> = {
  401: { 'WWW-Authenticate': header('The scheme to authenticate with.') },
  429: RETRY_AFTER,
  503: RETRY_AFTER,
};

const successResponse = ({ description, schema, example, mediaType, headers }: Answer, oauth: boolean): Response => ({
  description,
  headers: {
    ...REQUEST_ID,
    ...(oauth && { 'Cache-Control': header('Always `no-store`.') }),
    ...Object.fromEntries(Object.entries(headers).map(([name, meaning]) => [name, header(meaning)])),
  },
  content: schema && { [mediaType]: { schema: schemaRef(schema), example } },
});

function failureResponse(
  status: number,
  failures: (Problem | OAuthError)[],
  page: boolean,
  guides: string | null,
): Response {
  const headers = { ...REQUEST_ID, ...ERROR_HEADERS[status] };
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

const WAIT_SECONDS = 60;
const WRONG = [{ id: 'b8E7BDVoa1df1jDrbYlF', secret: 'wrong' }];
const WITH_HEADER = { headers: { authorization: 'Basic' } };
const TOO_LARGE = { statusCode: 413 };

const MALFORMED_OAUTH: Failure[] = [
  () => parseJsonParameters(Buffer.from('{')),
  () => parseFormParameters(Buffer.from('grant_type=a&grant_type=b')),
  invalidClient({ headers: {} }, []),
  invalidClient(WITH_HEADER, WRONG),
  asOAuth(problemOf(TOO_LARGE)),
  () => checkMediaType({ 'content-type': 'text/xml' }),
  slowDown(WAIT_SECONDS),
  asOAuth(unavailable()),
];

const UNREADABLE_BODY: Failure[] = [
  invalidJson(),
  repeatedField('notifyUrl'),
  problemOf(TOO_LARGE),
  unsupportedMediaType({ headers: {} }),
];

const UNREADABLE_FORM: Failure[] = [
  () => parseFormParameters(Buffer.from('form=a&form=b')),
  problemOf(TOO_LARGE),
  unsupportedMediaType({ headers: {}, routeOptions: { config: FORM_ROUTE } }),
];

const OTHER = { sandbox: 'production', production: 'sandbox' } as const;

const refusedIn = (environment: Environment): Record<Security, Failure[]> => ({
  basic: [invalidClient(WITH_HEADER, WRONG), slowDown(WAIT_SECONDS)].map(problemOf),
  bearer: [],
  oauth2: [
    tokenMissing(),
    invalidToken('', environment),
    invalidToken(generateToken('access', OTHER[environment]), environment),
    tooManyInvalidTokens(WAIT_SECONDS),
  ],
  internal: [refusal('internal'), tooManyFailures(WAIT_SECONDS)],
});

/** Every error of an operation: its own, and those of its kind, which come first for a page. */
function failuresOf(operation: Operation, service: Service): (Problem | OAuthError)[] {
  const [own, shared] = [operation.failures ?? [], sharedFailures(operation, service)];
  return (operation.page ? [...shared, ...own] : [...own, ...shared]).map(errorOf);
}

function sharedFailures(
  { handler, oauth, page, tag, path, security, body, parameters }: Operation,
  { environment }: Service,
): Failure[] {
  if (oauth) return MALFORMED_OAUTH;
  if (page) return [noIssuer(), ...(body ? [refused(), ...UNREADABLE_FORM] : []), unavailable()];
  return [
    ...SINGLE_HEADERS.map(severalHeaders),
    hostMissing(),
    ...(path.includes('{') ? [urlMalformed(), urlTooLong()] : []),
    ...(parameters?.query || security.length === 0 ? [] : [() => KNOWN_QUERY.check({ verbose: 'true' })]),
    ...(body ? UNREADABLE_BODY : []),
    ...security.flatMap((scheme) => refusedIn(environment)[scheme]),
    ...(handler && security.includes('bearer') && !knowsOwners(handler) ? [ownerRefused()] : []),
    ...(security.length > 0 ? [unavailable()] : []),
    // Probes do not count.
    ...(security.length === 0 && tag !== 'Service' ? [tooManyAnonymous(WAIT_SECONDS)] : []),
  ];
}

function errorOf(failure: Failure): Problem | OAuthError {
  if (typeof failure !== 'function') return failure;
  try {
    failure();
  } catch (error) {
    if (error instanceof Problem || error instanceof OAuthError) return error;
    throw error;
  }
  throw new Error(`${failure.toString()} does not fail`);
}

/** The same error on an OAuth route. */
function asOAuth(problem: Problem): OAuthError {
  return new OAuthError(oauthCodeOf(problem, problem), problem.detail, problem.getStatus());
}
