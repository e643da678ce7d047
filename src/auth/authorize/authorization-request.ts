import type { Client } from '../../clients/client.entity.js';
import { formPairs } from '../../http/oauth-route.js';
import { PageProblem } from '../../http/pages/page.js';

/** The error codes of RFC 6749 §4.1.2.1. */
type AuthorizationErrorCode =
  | 'invalid_request'
  | 'unauthorized_client'
  | 'access_denied'
  | 'unsupported_response_type'
  | 'invalid_scope'
  | 'server_error'
  | 'temporarily_unavailable';

/** An error that the client gets at its redirect URI. `description` is ASCII; integrators read it. */
export class AuthorizationError extends Error {
  constructor(
    readonly code: AuthorizationErrorCode,
    readonly description: string,
  ) {
    super(`${code}: ${description}`);
  }
}

/** Every value of each parameter, because a repeated one must be refused (RFC 6749 §3.1). */
export type Query = ReadonlyMap<string, string[]>;

/** The checked request of the client. */
export interface AuthorizationRequest {
  state: string | null;
  codeChallenge: string;
}

/** Reads the query of a URL. An empty parameter counts as omitted. Throws 400 if the encoding is broken. */
export function queryOf(url: string): Query {
  const query = new Map<string, string[]>();
  const [, text = ''] = url.split(/\?(.*)/s);
  for (const [name, value] of pairsOf(text)) {
    if (value === '') continue;
    const values = query.get(name);
    // A copy of the values for each of thousands of them would take tens of milliseconds.
    if (values) values.push(value);
    else query.set(name, [value]);
  }
  return query;
}

function pairsOf(text: string): [name: string, value: string][] {
  try {
    return formPairs(text);
  } catch {
    throw new PageProblem(400, 'brokenLink');
  }
}

/** The value of a parameter that is given once; null if it is missing, undefined if it is repeated. */
export function single(query: Query, name: string): string | null | undefined {
  const [value = null, ...more] = query.get(name) ?? [];
  return more.length === 0 ? value : undefined;
}

/** The state to give back, also with an error. */
export const stateOf = (query: Query): string | null => single(query, 'state') ?? null;

export const asksForSignIn = (query: Query): boolean => (query.get('prompt') ?? []).includes('login');

/** RFC 6749 Appendix A.5: printable ASCII. */
const STATE = /^[\x20-\x7e]+$/;
const MAX_STATE_LENGTH = 2_048;
/** SHA-256 in base64url (RFC 7636 §4.2). */
const S256 = /^[A-Za-z0-9_-]{43}$/;

/** Checks everything but the client and the redirect URI. Throws an {@link AuthorizationError}. */
export function checkRequest(query: Query, client: Client): AuthorizationRequest {
  if ([...query.values()].some(({ length }) => length > 1))
    throw new AuthorizationError('invalid_request', 'a parameter is given more than once');
  const value = (name: string): string | null => single(query, name) ?? null;
  checkResponse(value('response_type'), value('response_mode'));
  if (!client.grantTypes.includes('authorization_code'))
    throw new AuthorizationError('unauthorized_client', 'this client is not allowed to use the authorisation code');
  if (value('scope') !== null) throw new AuthorizationError('invalid_scope', 'no scopes are defined; omit scope');
  if (![null, 'login'].includes(value('prompt')))
    throw new AuthorizationError('invalid_request', 'this prompt is not supported; use login or omit it');
  const state = value('state');
  if (state !== null && !STATE.test(state))
    throw new AuthorizationError('invalid_request', 'state must be printable ASCII');
  if (state !== null && state.length > MAX_STATE_LENGTH)
    throw new AuthorizationError(
      'invalid_request',
      `state has more than ${MAX_STATE_LENGTH} characters; send a shorter one`,
    );
  return { state, codeChallenge: challengeOf(value('code_challenge'), value('code_challenge_method')) };
}

function checkResponse(type: string | null, mode: string | null): void {
  if (type === null) throw new AuthorizationError('invalid_request', 'response_type is missing; use code');
  if (type !== 'code')
    throw new AuthorizationError('unsupported_response_type', 'this response_type is not supported; use code');
  if (mode !== null && mode !== 'query')
    throw new AuthorizationError('invalid_request', 'this response_mode is not supported; use query or omit it');
}

function challengeOf(challenge: string | null, method: string | null): string {
  if (challenge === null)
    throw new AuthorizationError('invalid_request', 'code_challenge is missing; use PKCE with S256');
  if (method !== 'S256') throw new AuthorizationError('invalid_request', 'code_challenge_method must be S256');
  if (!S256.test(challenge))
    throw new AuthorizationError('invalid_request', 'code_challenge must be 43 characters of base64url');
  return challenge;
}

/** The redirect URI with the parameters of the response; its own query stays as it is (RFC 6749 §3.1.2). */
export function responseUrl(redirectUri: string, parameters: Record<string, string | null>): string {
  const given = Object.entries(parameters).filter((pair): pair is [string, string] => pair[1] !== null);
  return `${redirectUri}${redirectUri.includes('?') ? '&' : '?'}${new URLSearchParams(given)}`;
}
