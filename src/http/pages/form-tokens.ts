import { createHmac } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { randomAlphanumeric } from '../../values/identifier.js';
import { isSameText } from '../basic-credentials.js';
import type { HttpResponse } from '../exchange.js';
import { PageProblem } from './page.js';

/** 256 random bits. */
const TOKEN_LENGTH = 43;
/** A token, or one that is sealed. */
const VALUE = /^[\w.-]{43,130}$/;
/** Nothing may follow: with any other text the limits and the memory of sent forms would take it for another one. */
const SEALED = /^((\d+)\.\w+)\.([\w-]+)$/;
/** How long a form is valid before the sign-in. */
const MAX_AGE_MS = 3_600_000;

export const newToken = () => randomAlphanumeric(TOKEN_LENGTH);

/**
 * A cookie of this server that holds a token. Over https its name begins with `__Host-`, so that no other host and no
 * unencrypted page can set it.
 */
export class TokenCookie {
  private readonly name: string;

  /** `isSecure`: the browser reaches this server over https. */
  constructor(
    name: string,
    private readonly isSecure: boolean,
  ) {
    this.name = isSecure ? `__Host-${name}` : name;
  }

  /** Null if there is none, or if its form is wrong. */
  read({ cookie = '' }: IncomingHttpHeaders) {
    const found = cookie
      .split(';')
      .map((pair) => pair.trim().split('='))
      .filter(([key]) => key === this.name);
    // With two cookies of this name, it is unknown which one this server set.
    const value = found.length === 1 && found[0]?.[1];
    return value && VALUE.test(value) ? value : null;
  }

  /** Null deletes it. Without an age the browser forgets it when it is closed. */
  write(response: HttpResponse, value: string | null, maxAgeMs?: number) {
    const parts = [`${this.name}=${value ?? ''}`, 'Path=/', 'HttpOnly', 'SameSite=Lax'];
    if (this.isSecure) parts.push('Secure');
    if (value === null || maxAgeMs) parts.push(`Max-Age=${(maxAgeMs ?? 0) / 1_000}`);
    addHeader(response, 'Set-Cookie', parts.join('; '));
  }

  renew(response: HttpResponse) {
    const token = newToken();
    this.write(response, token);
    return token;
  }

  /** The token of this browser; a new one is set if it has none. */
  ensure(headers: IncomingHttpHeaders, response: HttpResponse) {
    return this.read(headers) ?? this.renew(response);
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
export function seal(token: string, purpose: string) {
  const message = `${Date.now()}.${newToken()}`;
  return `${message}.${macOf(token, purpose, message)}`;
}

/** Whether `sealed` was made by {@link seal} for this token and purpose within `maxAgeMs`, by default an hour. */
export function isSealed(token: string, purpose: string, sealed: unknown, maxAgeMs = MAX_AGE_MS) {
  const [, message = '', time, mac = ''] = typeof sealed === 'string' ? (SEALED.exec(sealed) ?? []) : [];
  const age = Math.abs(Date.now() - Number(time));
  return age < maxAgeMs && isSameText(mac, macOf(token, purpose, message));
}

/** Protects forms against requests that other sites make a browser send (CSRF), also before anybody has signed in. */
export class FormTokens {
  /** The token of this browser. It is renewed at sign-in and sign-out, so that earlier forms become invalid. */
  readonly cookie: TokenCookie;

  constructor(private readonly issuer: string) {
    this.cookie = new TokenCookie('usher-form', issuer.startsWith('https:'));
  }

  /** The token of the browser that sends a form. Throws 403 for a request from a page of another site. */
  sender(headers: IncomingHttpHeaders) {
    const { origin = null } = headers;
    // A browser names the origin of the page whose form it sends.
    if (isOfOtherSite(headers) || (origin !== null && origin !== new URL(this.issuer).origin)) throw refused();
    const token = this.cookie.read(headers);
    if (token === null) throw refused();
    return token;
  }

  /** What a form for `purpose` carries, for the browser of this request. */
  seal(headers: IncomingHttpHeaders, response: HttpResponse, purpose: string) {
    return seal(this.cookie.ensure(headers, response), purpose);
  }

  /** Throws 403 unless `sealed` was made for this browser and this purpose in the last hour. */
  check(headers: IncomingHttpHeaders, purpose: string, sealed: unknown) {
    if (!isSealed(this.sender(headers), purpose, sealed)) throw refused();
  }
}

/** Whether a browser says that a page of another site, or of another host of the same site, sends this request. */
export const isOfOtherSite = ({ 'sec-fetch-site': site }: IncomingHttpHeaders) =>
  site !== undefined && site !== 'same-origin' && site !== 'none';

export const refused = () => new PageProblem(403, 'voidForm');

const macOf = (browser: string, purpose: string, message: string) =>
  createHmac('sha256', browser).update(`${purpose}\n${message}`).digest('base64url');
