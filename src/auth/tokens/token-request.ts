import type { z } from 'zod';
import { GRANT_TYPES, type GrantType } from '../../clients/client.entity.js';
import { OAuthError } from '../../http/oauth-error.js';
import type { Parameters } from '../../http/oauth-route.js';
import { GRANT_REQUESTS } from './token.schemas.js';

/** The grants of POST /auth/token, and those of POST /auth/refresh. */
export const TOKEN_GRANTS: readonly GrantType[] = GRANT_TYPES;
export const REFRESH_GRANTS: readonly GrantType[] = ['refresh_token'];

/** The parameters that a grant needs beside grant_type. */
const NEEDED: ReadonlyMap<unknown, string[]> = new Map(
  Object.entries(GRANT_REQUESTS).map(([grantType, { shape }]) => [
    grantType,
    Object.entries<z.ZodType>(shape).flatMap(([name, schema]) =>
      name === 'grant_type' || schema.safeParse(undefined).success ? [] : name,
    ),
  ]),
);

/**
 * The grant_type, if the endpoint accepts it (specification 4.1 and 4.2). Checks the credentials in the body and the
 * parameters of the grant as well, and names everything that is missing or malformed (RFC 6749 §5.2).
 */
export function grantTypeOf(body: Parameters, clientId: string, accepted: readonly GrantType[]): GrantType {
  const given = body.grant_type;
  const likely = accepted.length === 1 && textFault(body, 'grant_type') !== null ? accepted[0] : given;
  refuse([...credentialFaults(body, clientId), ...textFaults(body, ['grant_type', ...(NEEDED.get(likely) ?? [])])]);
  const grantType = accepted.find((one) => one === given);
  if (!grantType) throw unsupported(given, accepted);
  return grantType;
}

function unsupported(given: unknown, accepted: readonly GrantType[]): OAuthError {
  const wanted = given === 'client_credentials' ? 'the token endpoint' : accepted.join(' or ');
  const name = given === 'client_credentials' ? `grant_type ${given}` : 'grant_type';
  return new OAuthError('unsupported_grant_type', `${name} is not supported here; use ${wanted}`);
}

/** The `token` to revoke or to introspect. Checks the credentials in the body as well. */
export function tokenOf(body: Parameters, clientId: string): string {
  refuse([...credentialFaults(body, clientId), ...textFaults(body, ['token'])]);
  return requiredText(body, 'token');
}

export function requiredText(body: Parameters, name: string): string {
  refuse(textFaults(body, [name]));
  return body[name] as string;
}

function refuse(faults: string[]): void {
  if (faults.length > 0) throw new OAuthError('invalid_request', faults.join('; '));
}

const textFaults = (body: Parameters, names: string[]): string[] =>
  names.flatMap((name) => textFault(body, name) ?? []);

function textFault(body: Parameters, name: string): string | null {
  const value = body[name];
  if (value === undefined) return `${name} is missing`;
  if (typeof value !== 'string') return `${name} must be a string`;
  return value === '' ? `${name} is empty` : null;
}

/** No scopes are defined, so only a missing or empty scope is accepted. */
export function checkScope(body: Parameters): void {
  if (!isGiven(body.scope)) return;
  throw new OAuthError('invalid_scope', 'no scopes are defined; omit scope');
}

/** The Basic header identifies the client. The body may repeat the same client_id but must not carry a secret. */
function credentialFaults(body: Parameters, clientId: string): string[] {
  const faults: string[] = [];
  if (isGiven(body.client_secret) || isGiven(body.client_assertion))
    faults.push('send the client credentials in the Authorization header only (client_secret_basic), not in the body');
  if (isGiven(body.client_id) && body.client_id !== clientId)
    faults.push('client_id differs from the Authorization header');
  return faults;
}

/** RFC 6749 §3.2: an empty parameter counts as omitted. So does null, which serializers write for an unset field. */
export const isGiven = (value: unknown): boolean => value !== undefined && value !== null && value !== '';
