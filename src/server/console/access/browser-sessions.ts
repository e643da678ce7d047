import type { FastifyRequest } from 'fastify';
import { LRUCache } from 'lru-cache';
import { digestToken } from '../../../auth/tokens/token.js';
import { isDatabaseDown } from '../../../database/errors.js';
import type { HttpRequest, HttpResponse } from '../../../http/exchange.js';
import { hiddenField, type Texts } from '../../../http/pages/fields.js';
import { FORM_FIELD } from '../../../http/pages/form.js';
import { isOfOtherSite, isSealed, seal, TokenCookie } from '../../../http/pages/form-tokens.js';
import type { Page, Visit } from '../../../http/pages/site.js';
import { forbidden, unavailable } from '../../../http/problem.js';
import { KNOWN_MS, type Sessions } from '../../../auth/sign-in/sessions.js';
import type { Session } from '../../../database/browser-session.entity.js';
import { NoAnswer, withTimeout } from '../../../values/duration.js';
import { parseUrl } from '../../../values/urls/notify-url.js';
import { LIVE_HEADER } from '../frame/frame.js';
import { acceptsPage } from '../../../http/pages/page.js';

const MAX_REMEMBERED = 1_000;
const REMEMBERED_MS = 60_000;
const TIMEOUT_MS = 3_000;

type CookieName = 'session' | 'known' | 'form';

/** The cookies of a site, and the sessions that they stand for. */
export abstract class BrowserSessions<Owner extends object> {
  /**
   * Sessions that this process has checked within the last minute, so that pages can be read while the database does
   * not answer. The owner may have been disabled meanwhile, so these sessions may not change anything.
   */
  private readonly remembered = new LRUCache<string, Owner>({ max: MAX_REMEMBERED, ttl: REMEMBERED_MS });

  /**
   * `home`: `/ops` or `/portal`. `siteUrl`: where browsers reach the site; null if it is not known. `publicUrl`: where they
   * reach the API.
   */
  constructor(
    private readonly sessions: Sessions<Session, Owner>,
    private readonly home: string,
    private readonly siteUrl: string | null,
    private readonly publicUrl = siteUrl,
  ) {}

  /**
   * The value of a cookie; null without one. `session`: the token of the session, which may have ended. `known`: what
   * the browser got when it last signed in to an account. `form`: the token that seals forms before the sign-in.
   */
  read(request: HttpRequest, name: CookieName) {
    return this.cookie(request, name).read(request.headers);
  }

  /** Who is signed in; null if nobody is, or if the session has ended. Throws 503 if the session cannot be checked. */
  async signedIn(request: FastifyRequest) {
    const session = this.read(request, 'session');
    if (session === null) return null;
    const key = digestToken(session);
    try {
      const owner = await withTimeout(this.sessions.find(session, isUse(request)), TIMEOUT_MS);
      // Undefined deletes it.
      this.remembered.set(key, owner ?? undefined);
      return owner && { ...owner, session };
    } catch (error) {
      const owner = SAFE_METHODS.includes(request.method) && this.remembered.get(key);
      if (owner) return { ...owner, session };
      throw error instanceof NoAnswer || isDatabaseDown(error)
        ? unavailable('the database does not answer, so the sign-in cannot be checked')
        : error;
    }
  }

  /** Gives the browser a session, and ends the one it had. */
  async begin(request: HttpRequest, reply: HttpResponse, { token, known }: { token: string; known?: string }) {
    await this.forget(request);
    this.cookie(request, 'session').write(reply, token);
    if (known) this.cookie(request, 'known').write(reply, known, KNOWN_MS);
    // Earlier sign-in forms become invalid, because somebody else may have prepared one.
    this.cookie(request, 'form').renew(reply);
  }

  /** The page that ends a session. `next`: where it redirects to. */
  protected signOutPage(next: string): Page {
    return {
      path: `${this.home}/sign-out`,
      show: () => next,
      actions: {
        'sign-out': {
          at: '',
          button: 'Sign out',
          answer: async (_, { request, reply }) => {
            await this.forget(request);
            this.cookie(request, 'session').write(reply, null);
            return next;
          },
        },
      },
    };
  }

  private cookie(request: HttpRequest, name: CookieName) {
    return new TokenCookie(`usher${this.home.replace('/', '-')}-${name}`, this.originOf(request).startsWith('https:'));
  }

  /** The field that protects a form before the sign-in. */
  formField({ request, reply, path }: Visit) {
    const browser = this.cookie(request, 'form').ensure(request.headers, reply);
    return hiddenField(FORM_FIELD, seal(browser, path));
  }

  /** Whether this browser got the form with these fields before the sign-in, from this page. */
  isOwnForm({ request, path }: Visit, fields: Texts) {
    const browser = this.read(request, 'form');
    return browser !== null && isSealed(browser, path, fields[FORM_FIELD]);
  }

  /**
   * Throws 403 for a request from a page of another site. `needsPage`: also for one that does not say which page sent it,
   * as every browser does for a request that writes, but no program.
   */
  checkPage(request: HttpRequest, needsPage = true) {
    const { origin, referer, 'sec-fetch-site': site } = request.headers;
    const address = origin ?? referer;
    const own = this.originOf(request);
    const isOwn =
      address === undefined
        ? site !== undefined || !needsPage
        : // A proxy may end TLS without a header that says so, so a page over https is always accepted.
          [own, own.replace('http:', 'https:')].includes(parseUrl(address)?.origin ?? '');
    if (!isOwn || isOfOtherSite(request.headers))
      throw forbidden(`this request does not come from a page of this site; use the pages at ${this.home}`);
  }

  /** The origin of `siteUrl`, otherwise of the Host header: https if a proxy says so, or if USHER_AUTH_URL is this origin. */
  private originOf({ headers: { host = '' }, protocol }: HttpRequest) {
    if (this.siteUrl !== null) return new URL(this.siteUrl).origin;
    const encrypted = `https://${host}`;
    const isEncrypted =
      protocol === 'https' || (this.publicUrl !== null && encrypted === new URL(this.publicUrl).origin);
    return isEncrypted ? encrypted : `http://${host}`;
  }

  private async forget(request: HttpRequest) {
    const token = this.read(request, 'session');
    if (token === null) return;
    this.remembered.delete(digestToken(token));
    await this.sessions.end(token);
  }
}

export const SAFE_METHODS = ['GET', 'HEAD', 'OPTIONS'];

/** What a page does by itself, such as refreshing, does not extend the session. */
const isUse = (request: FastifyRequest) =>
  !SAFE_METHODS.includes(request.method) || (acceptsPage(request) && request.headers[LIVE_HEADER] === undefined);
