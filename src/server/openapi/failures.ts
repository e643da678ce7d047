import { noIssuer } from '../../auth/authorize/authorization-site.js';
import { invalidToken, ownerRefused, tokenMissing } from '../../auth/bearer/bearer.guard.js';
import { tooManyInvalidTokens } from '../../auth/bearer/access-tokens.js';
import { invalidClient, slowDown } from '../../auth/client-authentication/client-authentication.js';
import { refusal, tooManyFailures } from '../../auth/client-authentication/internal.guard.js';
import { generateToken } from '../../auth/tokens/token.js';
import { severalHeaders } from '../../http/basic-credentials.js';
import { oauthCodeOf, problemOf } from '../../http/error-response.js';
import { OAuthError } from '../../http/oauth-error.js';
import { checkMediaType, parseFormParameters, parseJsonParameters } from '../../http/oauth-route.js';
import type { Failure, Operation, Security } from '../../http/operation.js';
import { refused } from '../../http/pages/form-token.js';
import { KNOWN_QUERY, Problem, unavailable } from '../../http/problem.js';
import { hostMissing, severalHosts } from '../connections.js';
import { invalidJson, repeatedField, unsupportedMediaType } from '../request-bodies.js';

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
  unsupportedMediaType({}),
];

const REFUSED: Record<Security, Failure[]> = {
  basic: [severalHeaders(), invalidClient(WITH_HEADER, WRONG), slowDown(WAIT_SECONDS)].map(problemOf),
  bearer: [
    tokenMissing(),
    invalidToken('', 'sandbox'),
    invalidToken(generateToken('access', 'sandbox'), 'production'),
    ownerRefused(),
    tooManyInvalidTokens(WAIT_SECONDS),
  ],
  internal: [refusal('internal'), tooManyFailures(WAIT_SECONDS)],
};

/** Every error an operation can return: its own, and those that all operations of its kind share. Those of all pages come first. */
export function failuresOf(operation: Operation): (Problem | OAuthError)[] {
  const [own, shared] = [operation.failures ?? [], sharedFailures(operation)];
  return (operation.page ? [...shared, ...own] : [...own, ...shared]).map(errorOf);
}

function sharedFailures({ oauth, page, security, body, parameters }: Operation): Failure[] {
  if (oauth) return MALFORMED_OAUTH;
  if (page) return [noIssuer(), ...(body ? [refused()] : []), unavailable()];
  return [
    severalHosts(),
    hostMissing(),
    ...(parameters?.query || security.length === 0 ? [] : [() => KNOWN_QUERY.check({ verbose: 'true' })]),
    ...(body ? UNREADABLE_BODY : []),
    ...security.flatMap((scheme) => REFUSED[scheme]),
    ...(security.length > 0 ? [unavailable()] : []),
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
