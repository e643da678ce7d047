import { createHmac, timingSafeEqual } from 'node:crypto';

const LIFETIME_SECONDS = 3_600;

const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString('base64url');
const sign = (text: string, secret: string): Buffer => createHmac('sha256', secret).update(text).digest();

/** A JSON Web Token (HS256) of a member of staff. */
export function issueStaffToken(user: string, secret: string, nowMs = Date.now()): string {
  const exp = Math.floor(nowMs / 1_000) + LIFETIME_SECONDS;
  const text = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode({ sub: user, exp })}`;
  return `${text}.${sign(text, secret).toString('base64url')}`;
}

/** The user of a token, or null if the token is invalid or expired. */
export function staffUserOf(token: string, secret: string, nowMs = Date.now()): string | null {
  const [header = '', payload = '', signature = ''] = token.split('.');
  const given = Buffer.from(signature, 'base64url');
  const expected = sign(`${header}.${payload}`, secret);
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) return null;
  const { sub, exp } = JSON.parse(Buffer.from(payload, 'base64url').toString()) as { sub: string; exp: number };
  return exp * 1_000 > nowMs ? sub : null;
}
