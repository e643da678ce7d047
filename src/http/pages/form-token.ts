import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { randomAlphanumeric } from '../../values/identifier.js';
import type { HttpResponse } from '../exchange.js';
import { Problem } from '../problem.js';

/** 256 random bits. */
const TOKEN = /^[A-Za-z0-9]{43}$/;
const TOKEN_LENGTH = 43;
const MAX_AGE_MS = 3_600_000;

export const newToken = (): string => randomAlphanumeric(TOKEN_LENGTH);

/** SHA-256 in base64url. Tokens have 256 random bits, so no salt is needed. */
export const digestOf = (token: string): string => createHash('sha256').update(token).digest('base64url');

/**
 * Cookies of this server. Over https their names begin with `__Host-`, so that no other host and no unencrypted page can
 * set them.
 */
export class Cookies {
  /** `isSecure`: the browser reaches this server over https. */
  constructor(private readonly isSecure: boolean) {}

  /** A cookie that holds a token; null if there is none, or none of the right form. */
  read({ cookie = '' }: IncomingHttpHeaders, name: string): string | null {
    const wanted = this.nameOf(name);
    const values = cookie
      .split(';')
      .map((pair) => pair.trim().split('='))
      .filter(([key]) => key === wanted)
      .map(([, value = '']) => value);
    // Two cookies of one name: it cannot be known which of them this server set.
    const [value = ''] = values.length === 1 ? values : [];
    return TOKEN.test(value) ? value : null;
  }

  /** Null deletes it. Without an age the browser forgets it when it is closed. */
  write(response: HttpResponse, name: string, value: string | null): void {
    const parts = [`${this.nameOf(name)}=${value ?? ''}`, 'Path=/', 'HttpOnly', 'SameSite=Lax'];
    if (this.isSecure) parts.push('Secure');
    if (value === null) parts.push('Max-Age=0');
    addHeader(response, 'Set-Cookie', parts.join('; '));
  }

  private nameOf(name: string): string {
    return this.isSecure ? `__Host-${name}` : name;
  }
}

/** Fastify's `header` adds a second Set-Cookie; Express's replaces the first one, but has `append`. */
function addHeader(
  response: HttpResponse & { append?(name: string, value: string): void },
  name: string,
  value: string,
) {
  if (response.append) response.append(name, value);
  else response.header(name, value);
}

/** What a form for `purpose` carries: the time, a nonce, and their HMAC with the browser's secret token as key. */
export function seal(token: string, purpose: string): string {
  const message = `${Date.now()}.${newToken()}`;
  return `${message}.${macOf(token, purpose, message)}`;
}

/** Whether `sealed` was made by {@link seal} for this token and purpose within `maxAgeMs`. */
export function isSealed(token: string, purpose: string, sealed: unknown, maxAgeMs: number): boolean {
  const [time = '', nonce = '', mac = ''] = typeof sealed === 'string' ? sealed.split('.') : [];
  const age = Math.abs(Date.now() - Number(time));
  return age < maxAgeMs && isEqual(mac, macOf(token, purpose, `${time}.${nonce}`));
}

const FORM_COOKIE = 'usher-form';

/** Protects forms against requests that other sites make a browser send (CSRF), also before anybody has signed in. */
export class FormTokens {
  private readonly cookies: Cookies;

  constructor(private readonly issuer: string) {
    this.cookies = new Cookies(issuer.startsWith('https:'));
  }

  /** The token of this browser; a new one is set as a cookie. */
  browser(headers: IncomingHttpHeaders, response: HttpResponse): string {
    const known = this.cookies.read(headers, FORM_COOKIE);
    return known ?? this.renew(response);
  }

  /** At sign-in and sign-out: forms from before are void. */
  renew(response: HttpResponse): string {
    const token = newToken();
    this.cookies.write(response, FORM_COOKIE, token);
    return token;
  }

  /** The token of the browser that sends a form. Throws 403 for a request from a page of another site. */
  sender(headers: IncomingHttpHeaders): string {
    this.checkOrigin(headers);
    const token = this.cookies.read(headers, FORM_COOKIE);
    if (token === null) throw refused();
    return token;
  }

  /** What a form for `purpose` carries, for the browser of this request. */
  seal(headers: IncomingHttpHeaders, response: HttpResponse, purpose: string): string {
    return seal(this.browser(headers, response), purpose);
  }

  /** Throws 403 unless `sealed` was made for this browser and this purpose in the last hour. */
  check(headers: IncomingHttpHeaders, purpose: string, sealed: unknown): void {
    if (!isSealed(this.sender(headers), purpose, sealed, MAX_AGE_MS)) throw refused();
  }

  /** A browser tells the page that a form was sent from. */
  private checkOrigin({ 'sec-fetch-site': site, origin }: IncomingHttpHeaders): void {
    const isForeign = site !== undefined && site !== 'same-origin' && site !== 'none';
    if (isForeign || (origin !== undefined && origin !== new URL(this.issuer).origin)) throw refused();
  }
}

export const refused = (): Problem =>
  new Problem(403, 'This form is no longer valid', 'Go back to the application that you came from, and start again.');

const macOf = (browser: string, purpose: string, message: string): string =>
  createHmac('sha256', browser).update(`${purpose}\n${message}`).digest('base64url');

function isEqual(left: string, right: string): boolean {
  const [one, other] = [Buffer.from(left), Buffer.from(right)];
  return one.length === other.length && timingSafeEqual(one, other);
}
