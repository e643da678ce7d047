import { Inject, Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { digestToken } from '../../../auth/tokens/token.js';
import { isDatabaseDown } from '../../../database/sql.js';
import type { HttpRequest, HttpResponse } from '../../../http/exchange.js';
import { isOfOtherSite, TokenCookie } from '../../../http/pages/form-token.js';
import { unavailable } from '../../../http/problem.js';
import { type BegunSession, KNOWN_MS } from '../../../auth/sign-in/sessions.js';
import { OperatorSessions, type SessionOwner } from '../../../operators/operator-sessions.js';
import { NoAnswer, withTimeout } from '../../../values/duration.js';
import { parseUrl } from '../../../values/urls/notify-url.js';
import { type Config, SERVER_CONFIG } from '../../settings/settings.js';

const MAX_REMEMBERED = 1_000;
const REMEMBERED_MS = 60_000;
const TIMEOUT_MS = 3_000;

type CookieName = 'session' | 'known' | 'form';

/** The cookies of the console, and the sessions that they stand for. */
@Injectable()
export class BrowserSessions {
  /**
   * Sessions that this process has checked within the last minute, so that the console can still be read while they cannot
   * be checked. The operator may have been disabled meanwhile, so nothing is changed with them.
   */
  private readonly remembered = new LRUCache<string, SessionOwner>({ max: MAX_REMEMBERED, ttl: REMEMBERED_MS });

  constructor(
    private readonly sessions: OperatorSessions,
    @Inject(SERVER_CONFIG) private readonly config: Config,
  ) {}

  /**
   * What the browser has in a cookie; null if it has none. `session`: the token of its session, which may have ended.
   * `known`: what it got when it last signed in to an account. `form`: the token that seals forms before the sign-in.
   */
  read(request: HttpRequest, name: CookieName): string | null {
    return this.cookie(request, name).read(request.headers);
  }

  /** Who has the session of a request; null if it has ended. `isUse`: the session is extended. 503 if that is not known. */
  async owner({ method }: HttpRequest, token: string, isUse: boolean): Promise<SessionOwner | null> {
    const key = digestToken(token);
    try {
      const owner = await withTimeout(this.sessions.find(token, isUse), TIMEOUT_MS);
      if (owner) this.remembered.set(key, owner);
      else this.remembered.delete(key);
      return owner;
    } catch (error) {
      const owner = ['GET', 'HEAD'].includes(method) && this.remembered.get(key);
      if (owner) return owner;
      throw error instanceof NoAnswer || isDatabaseDown(error)
        ? unavailable('the database does not answer, so the sign-in cannot be checked')
        : error;
    }
  }

  /** Gives the browser a session, and ends the one it had. */
  async begin(request: HttpRequest, reply: HttpResponse, { token, known }: BegunSession): Promise<void> {
    await this.forget(request);
    this.cookie(request, 'session').write(reply, token);
    this.cookie(request, 'known').write(reply, known, KNOWN_MS);
    // A sign-in form from before is void, so nobody can have prepared one.
    this.cookie(request, 'form').renew(reply);
  }

  async end(request: HttpRequest, reply: HttpResponse): Promise<void> {
    await this.forget(request);
    this.cookie(request, 'session').write(reply, null);
  }

  /** A cookie of the console; see {@link read}. */
  cookie(request: HttpRequest, name: CookieName): TokenCookie {
    return new TokenCookie(`usher-ops-${name}`, originOf(request, this.config).startsWith('https:'));
  }

  private async forget(request: HttpRequest): Promise<void> {
    const token = this.read(request, 'session');
    if (token === null) return;
    this.remembered.delete(digestToken(token));
    await this.sessions.end(token);
  }
}

export const SAFE_METHODS = ['GET', 'HEAD', 'OPTIONS'];

/** The origin of the console: OPS_PUBLIC_URL, otherwise the Host, over https as far as a proxy or USHER_AUTH_URL tells. */
function originOf({ headers: { host = '' }, protocol }: HttpRequest, { opsPublicUrl, publicUrl }: Config): string {
  if (opsPublicUrl !== null) return opsPublicUrl;
  const encrypted = `https://${host}`;
  const isEncrypted = protocol === 'https' || (publicUrl !== null && encrypted === new URL(publicUrl).origin);
  return isEncrypted ? encrypted : `http://${host}`;
}

/** What a browser tells of the page that sends a request. Programs send none of these headers. */
export function isCrossSite(request: HttpRequest, config: Config): boolean {
  const { headers } = request;
  if (isOfOtherSite(headers)) return true;
  const address = pageOf(request);
  if (address === undefined) return false;
  const origin = originOf(request, config);
  // A proxy may end TLS without telling, so a page over https is accepted in either case.
  return ![origin, origin.replace('http:', 'https:')].includes(parseUrl(address)?.origin ?? '');
}

/** Whether the request says which page sent it. Every browser says so of a request that writes. */
export const namesItsPage = (request: HttpRequest): boolean =>
  request.headers['sec-fetch-site'] !== undefined || pageOf(request) !== undefined;

const pageOf = ({ headers }: HttpRequest): string | undefined => headers.origin ?? headers.referer;
