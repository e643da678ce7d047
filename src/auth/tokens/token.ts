import { createHash } from 'node:crypto';
import { randomAlphanumeric, type Environment } from '../../values/identifier.js';

export type TokenKind = 'access' | 'refresh';

/** 43 characters of [A-Za-z0-9]: 256 random bits. */
const SECRET_LENGTH = 43;
const FORM = /^usher_(sandbox|production)_(access|refresh)_[A-Za-z0-9]{43}$/;

/** A fresh opaque token whose prefix tells a person (and a leak scanner) its kind and environment. */
export function generateToken(kind: TokenKind, environment: Environment): string {
  return `usher_${environment}_${kind}_${randomAlphanumeric(SECRET_LENGTH)}`;
}

/** What a token says of itself, or null where it is not one of ours. Whether it is good, only the database knows. */
export function parseToken(token: string): { kind: TokenKind; environment: Environment } | null {
  const match = FORM.exec(token);
  return match && { environment: match[1] as Environment, kind: match[2] as TokenKind };
}

/** SHA-256 in base64url, 43 characters: all that is stored. A token has 256 random bits, so no salt is needed. */
export function digestToken(token: string): string {
  return createHash('sha256').update(token).digest('base64url');
}
