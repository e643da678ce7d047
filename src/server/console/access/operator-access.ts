import { Inject, Injectable } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { FixedCredentials } from '../../../auth/client-authentication/internal.guard.js';
import { parseBasicHeader } from '../../../http/basic-credentials.js';
import { setViewer, type Viewer } from '../../../http/pages/form.js';
import { unauthorized } from '../../../http/problem.js';
import { OperatorSessions, type SessionOwner } from '../../../operators/operator-sessions.js';
import { type Config, SERVER_CONFIG } from '../../settings/settings.js';
import { wantsPage } from '../frame/pages.js';
import { OPS_HEADERS, OPS_SITE, PASSWORD_PATH, SIGN_IN_PATH, SIGN_OUT_PATH } from '../frame/frame.js';
import { BrowserSessions, forbidden, SAFE_METHODS } from './browser-sessions.js';

/** Also accepts METRICS_USER and METRICS_PASSWORD, which no other path accepts. */
const METRICS_PATH = '/ops/metrics';

/** What a viewer may post to: the routes about their own session and password. */
const OWN_PATHS = [SIGN_IN_PATH, SIGN_OUT_PATH, PASSWORD_PATH];

/** Checks every request at and below /ops before anything else: who makes it, and whether they may. */
@Injectable()
export class OperatorAccess extends BrowserSessions<SessionOwner> {
  constructor(
    private readonly credentials: FixedCredentials,
    sessions: OperatorSessions,
    @Inject(SERVER_CONFIG) private readonly config: Config,
  ) {
    super(sessions, '/ops', config.opsPublicUrl, config.publicUrl);
  }

  /** False if the browser was redirected to the sign-in page. Throws a {@link Problem} to refuse the request. */
  async check(request: FastifyRequest, reply: FastifyReply): Promise<boolean> {
    void reply.headers(OPS_HEADERS);
    if (OPS_SITE.assets.some(({ path }) => path === request.routeOptions.url)) return true;
    const operator = await this.operatorOf(request);
    if (operator) setViewer(request, operator);
    else if (request.routeOptions.url !== SIGN_IN_PATH) return this.askToSignIn(request, reply);
    if (!SAFE_METHODS.includes(request.method)) this.checkWrite(request, operator);
    return true;
  }

  /** An Authorization header takes precedence over a session. Null without either, or if the session has ended. */
  async operatorOf(request: FastifyRequest): Promise<Viewer | null> {
    const { operator, metrics, environment } = this.config;
    const { authorization } = request.headers;
    if (authorization !== undefined) {
      const isScrape = request.routeOptions.url === METRICS_PATH;
      const isScraper = isScrape && parseBasicHeader(authorization)[0]?.id === metrics?.user;
      const expected = (isScraper && metrics) || operator;
      await this.credentials.check(request, 'operator', expected);
      return { name: expected.user, session: null, environment, mayChange: true, clientId: null };
    }
    const owner = await this.signedIn(request);
    return owner && { ...owner, environment, mayChange: owner.role === 'operator', clientId: null };
  }

  /** A browser that opens a page is redirected to the sign-in; any other request is answered 401. */
  private async askToSignIn(request: FastifyRequest, reply: FastifyReply): Promise<false> {
    if (SAFE_METHODS.includes(request.method) && wantsPage(request)) {
      void reply.redirect(`${SIGN_IN_PATH}?${new URLSearchParams({ return_to: request.url })}`, 303);
      return false;
    }
    // A Basic challenge would make the browser ask for a password in a window of its own.
    if (this.read(request, 'session') !== null)
      throw unauthorized('the session has ended; sign in again at /ops/sign-in', 'Session realm="usher ops"');
    await this.credentials.check(request, 'operator', this.config.operator);
    return false;
  }

  private checkWrite(request: FastifyRequest, operator: Viewer | null) {
    this.checkPage(request, operator === null || operator.session !== null);
    if (operator?.mayChange === false && !OWN_PATHS.includes(request.routeOptions.url ?? ''))
      throw forbidden(
        'your role is viewer, which can read but not change anything; ask an operator for the role operator',
      );
  }
}
