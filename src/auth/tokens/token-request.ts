import type { GrantType } from '../../clients/client.entity.js';
import { OAuthError } from '../../http/oauth-error.js';
import type { Parameters } from '../../http/oauth-parameters.js';

/** The grant_type, if the endpoint accepts it (specification 4.1 and 4.2; errors: RFC 6749 §5.2). */
export function grantTypeOf(body: Parameters, accepted: GrantType[]): GrantType {
  const given = requiredText(body, 'grant_type');
  const grantType = accepted.find((one) => one === given);
  if (grantType) return grantType;
  const wanted = given === 'client_credentials' ? 'POST /auth/token' : accepted.join(' or ');
  const name = given === 'client_credentials' ? `grant_type ${given}` : 'grant_type';
  throw new OAuthError('unsupported_grant_type', `${name} is not supported here; use ${wanted}`);
}

/** Returns a required parameter, which must be a non-empty string. */
export function requiredText(body: Parameters, name: string): string {
  const value = body[name];
  if (value === undefined) throw new OAuthError('invalid_request', `${name} is missing`);
  if (typeof value !== 'string') throw new OAuthError('invalid_request', `${name} must be a string`);
  if (value === '') throw new OAuthError('invalid_request', `${name} is empty`);
  return value;
}

/** No scopes are defined, so only a missing or empty scope is accepted. */
export function checkScope(body: Parameters): void {
  if (!isGiven(body.scope)) return;
  throw new OAuthError('invalid_scope', 'no scopes are defined; omit scope');
}

/** The Basic header identifies the client. The body may repeat the same client_id but must not carry a secret. */
export function checkBodyCredentials(body: Parameters, clientId: string): void {
  if (isGiven(body.client_secret) || isGiven(body.client_assertion)) {
    throw new OAuthError('invalid_request', 'send the client credentials in the Authorization header only');
  }
  if (isGiven(body.client_id) && body.client_id !== clientId) {
    throw new OAuthError('invalid_request', 'client_id differs from the Authorization header');
  }
}

/** RFC 6749 §3.2: an empty parameter counts as omitted. So does null, which serializers write for an unset field. */
const isGiven = (value: unknown): boolean => value !== undefined && value !== null && value !== '';
