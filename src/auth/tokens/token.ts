import { hash } from 'node:crypto';
import { randomAlphanumeric, type Environment } from '../../values/identifier.js';

type TokenKind = 'access' | 'refresh' | 'code';

/** 43 characters of [A-Za-z0-9]: 256 random bits. */
const SECRET_LENGTH = 43;
const TOKEN_PATTERN = /^usher_(sandbox|production)_(access|refresh|code)_[A-Za-z0-9]{43}$/;

/**
 * A new opaque token. Its prefix shows its kind and environment to people and to leak scanners. A portal token is part of a
 * link, not a token of the API, so {@link parseToken} does not accept it.
 */
export function generateToken(kind: TokenKind | 'portal', environment: Environment): string {
  return `usher_${environment}_${kind}_${randomAlphanumeric(SECRET_LENGTH)}`;
}

export interface NewTokens {
  accessToken: string;
  refreshToken: string;
}

/** Makes the first tokens of a grant, and their digests, which are stored. */
export function newTokens(environment: Environment) {
  const [refreshToken, accessToken] = [generateToken('refresh', environment), generateToken('access', environment)];
  const digests = { refreshDigest: digestToken(refreshToken), accessDigest: digestToken(accessToken) };
  return { tokens: { accessToken, refreshToken }, digests };
}

/** Kind and environment from the prefix; null if the format is wrong. Does not check whether the token is valid. */
export function parseToken(token: string): { kind: TokenKind; environment: Environment } | null {
  const match = TOKEN_PATTERN.exec(token);
  return match && { environment: match[1] as Environment, kind: match[2] as TokenKind };
}

/**
 * What is wrong if a token is for another environment: the most common mistake. The environment is readable in the token's
 * prefix, so naming it reveals nothing.
 */
export const wrongEnvironment = (token: ReturnType<typeof parseToken>, expected: Environment): string | null =>
  token === null || token.environment === expected
    ? null
    : `this token is for the ${token.environment} environment; use a ${expected} token`;

const KINDS: Record<TokenKind, string> = { access: 'an access token', refresh: 'a refresh token', code: 'a code' };

/** What is wrong if a token is of another kind. It is readable in the prefix, too. */
export const wrongKind = (token: ReturnType<typeof parseToken>, expected: 'access' | 'refresh'): string | null =>
  token === null || token.kind === expected ? null : `this is ${KINDS[token.kind]}; send the ${expected}_token`;

/** SHA-256 in base64url (43 characters). Only this is stored. A token has 256 random bits, so no salt is needed. */
export function digestToken(token: string): string {
  return hash('sha256', token, 'base64url');
}
