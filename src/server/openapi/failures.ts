import { issuerOf, noIssuer } from '../../auth/authorize/authorization-site.js';
import { tooManyInvalidTokens } from '../../auth/bearer/access-tokens.js';
import { invalidToken, knowsOwners, ownerRefused, tokenMissing } from '../../auth/bearer/bearer.guard.js';
import { invalidClient, slowDown } from '../../auth/client-authentication/client-authentication.js';
import { refusal, tooManyFailures } from '../../auth/client-authentication/internal.guard.js';
import { generateToken } from '../../auth/tokens/token.js';
import { oauthCodeOf, problemOf } from '../../http/error-response.js';
import { severalHeaders, SINGLE_HEADERS } from '../../http/exchange.js';
import { OAuthError } from '../../http/oauth-error.js';
import { checkMediaType, parseFormParameters, parseJsonParameters } from '../../http/oauth-route.js';
import type { Failure, Operation, Security } from '../../http/operation.js';
import { refused } from '../../http/pages/form-tokens.js';
import { KNOWN_QUERY, Problem, unavailable } from '../../http/problem.js';
import type { ResolvedOptions } from '../../usher.options.js';
import type { Environment } from '../../values/identifier.js';
import { hostMissing, tooManyAnonymous } from '../connections.js';
import { FORM_ROUTE, invalidJson, repeatedField, unsupportedMediaType } from '../request-bodies.js';
import { urlMalformed, urlTooLong } from '../unreadable-requests.js';

/** What the examples show of the service. */
export type Service = Pick<ResolvedOptions, 'environment' | 'publicUrl' | 'guidesUrl'>;

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
export function failuresOf(operation: Operation, service: Service): (Problem | OAuthError)[] {
  const [own, shared] = [operation.failures ?? [], sharedFailures(operation, service)];
  return (operation.page ? [...shared, ...own] : [...own, ...shared]).map(errorOf);
}

function sharedFailures(
  { handler, oauth, page, tag, method, path, security, body, parameters }: Operation,
  service: Service,
): Failure[] {
  if (oauth) return MALFORMED_OAUTH;
  if (page)
    return [
      ...(issuerOf(service) === null ? [noIssuer()] : []),
      ...(body ? [refused(), ...UNREADABLE_FORM] : []),
      ...[hostMissing(), tooManyAnonymous(WAIT_SECONDS), unavailable()],
    ];
  return [
    ...SINGLE_HEADERS.map(severalHeaders),
    hostMissing(),
    ...(path.includes('{') ? [urlMalformed(), urlTooLong()] : []),
    ...(parameters?.query || security.length === 0 ? [] : [() => KNOWN_QUERY.check({ verbose: 'true' })]),
    // Also where no body is needed: one that is sent all the same is read.
    ...(method === 'get' ? [] : UNREADABLE_BODY),
    ...security.flatMap((scheme) => refusedIn(service.environment)[scheme]),
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
  const { 'Retry-After': wait } = problem.headers;
  const seconds = wait === undefined ? wait : Number(wait);
  return new OAuthError(oauthCodeOf(problem, problem), problem.detail, problem.getStatus(), seconds);
}
