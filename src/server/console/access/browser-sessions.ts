import { Inject, Injectable } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { LRUCache } from 'lru-cache';
import { isDatabaseDown } from '../../../database/sql.js';
import { Cookies, digestOf, newToken } from '../../../http/pages/form-token.js';
import { unavailable } from '../../../http/problem.js';
import { OPERATOR_IDLE_MS, OperatorSessions, type SessionOwner } from '../../../operators/operator-sessions.js';
import { withTimeout } from '../../health/cached-query.js';
import { type Config, SERVER_CONFIG } from '../../settings/settings.js';
import { isEncrypted } from './origin-check.js';

const SESSION_COOKIE = 'usher-ops-session';
const FORM_COOKIE = 'usher-ops-form';
const MAX_REMEMBERED = 1_000;
const TIMEOUT_MS = 3_000;

/** The cookies of the console, and the sessions that they stand for. */
@Injectable()
export class BrowserSessions {
  /**
   * Sessions that this process has checked. They are used only while the database does not answer, so that the console can
   * still be read then. Without the database nothing can be changed: each change is recorded first.
   */
  private readonly remembered = new LRUCache<string, SessionOwner>({ max: MAX_REMEMBERED, ttl: OPERATOR_IDLE_MS });

  constructor(
    private readonly sessions: OperatorSessions,
    @Inject(SERVER_CONFIG) private readonly config: Config,
  ) {}

  /** The token of the browser's session, which may have ended; null if it has none. */
  token(request: FastifyRequest): string | null {
    return this.cookies(request).read(request.headers, SESSION_COOKIE);
  }

  /** Who has the session; null if it has ended. `isUse`: the session is extended. */
  async owner(token: string, isUse: boolean): Promise<SessionOwner | null> {
    const key = digestOf(token);
    try {
      const owner = await withTimeout(this.sessions.find(token, isUse), TIMEOUT_MS);
      if (owner) this.remembered.set(key, owner);
      else this.remembered.delete(key);
      return owner;
    } catch (error) {
      const owner = this.remembered.get(key);
      if (owner) return owner;
      throw isDatabaseDown(error)
        ? unavailable('the database does not answer, so the sign-in cannot be checked')
        : error;
    }
  }

  /** Gives the browser a session, and ends the one it had. */
  async begin(request: FastifyRequest, reply: FastifyReply, token: string): Promise<void> {
    await this.forget(request);
    const cookies = this.cookies(request);
    cookies.write(reply, SESSION_COOKIE, token);
    // A sign-in form from before is void, so nobody can have prepared one.
    cookies.write(reply, FORM_COOKIE, newToken());
  }

  async end(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    await this.forget(request);
    this.cookies(request).write(reply, SESSION_COOKIE, null);
  }

  /** The token that seals forms before the sign-in; null if the browser has none. */
  formToken(request: FastifyRequest): string | null {
    return this.cookies(request).read(request.headers, FORM_COOKIE);
  }

  newFormToken(request: FastifyRequest, reply: FastifyReply): string {
    const token = newToken();
    this.cookies(request).write(reply, FORM_COOKIE, token);
    return token;
  }

  private async forget(request: FastifyRequest): Promise<void> {
    const token = this.token(request);
    if (token === null) return;
    this.remembered.delete(digestOf(token));
    await this.sessions.end(token);
  }

  private cookies(request: FastifyRequest): Cookies {
    return new Cookies(isEncrypted(request, this.config.publicUrl));
  }
}
