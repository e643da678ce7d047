import type { GrantType } from '../../clients/client.entity.js';
import { OAuthError } from '../../http/oauth-error.js';
import type { Parameters } from '../../http/oauth-parameters.js';

/** The endpoint's own grant type, checked: specification 4.1 and 4.2, errors after RFC 6749 §5.2. */
export function checkGrantType(body: Parameters, expected: GrantType, endpoints: Record<GrantType, string>): void {
  const grantType = requiredText(body, 'grant_type');
  if (grantType === expected) return;
  const elsewhere = Object.entries(endpoints).find(([grant]) => grant === grantType)?.[1];
  throw new OAuthError(
    'unsupported_grant_type',
    elsewhere
      ? `grant_type ${grantType} belongs to ${elsewhere}; this endpoint takes ${expected}`
      : `this endpoint takes grant_type ${expected}`,
  );
}

/** A parameter that must be there and be a string that is not empty. */
export function requiredText(body: Parameters, name: string): string {
  const value = body[name];
  if (value === undefined) throw new OAuthError('invalid_request', `${name} is missing`);
  if (typeof value !== 'string') throw new OAuthError('invalid_request', `${name} must be a string`);
  if (value === '') throw new OAuthError('invalid_request', `${name} is empty`);
  return value;
}

/** No scopes are defined: only an absent or an empty one is accepted. */
export function checkScope(body: Parameters): void {
  if (!isGiven(body.scope)) return;
  throw new OAuthError('invalid_scope', 'no scopes are defined; leave scope out');
}

/** The client is known from the Basic header: the body may repeat its id, but neither differ nor carry a secret. */
export function checkBodyCredentials(body: Parameters, clientId: string): void {
  if (isGiven(body.client_secret) || isGiven(body.client_assertion)) {
    throw new OAuthError('invalid_request', 'send the client credentials in the Authorization header only');
  }
  if (isGiven(body.client_id) && body.client_id !== clientId) {
    throw new OAuthError('invalid_request', 'client_id differs from the Authorization header');
  }
}

/** RFC 6749 §3.2: a parameter without a value is as good as left out. So is a null, as serializers write for what is not set. */
const isGiven = (value: unknown): boolean => value !== undefined && value !== null && value !== '';
