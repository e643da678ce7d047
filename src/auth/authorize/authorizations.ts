import { Inject, Injectable } from '@nestjs/common';
import { type DataSource, type EntityManager, In, IsNull, MoreThan } from 'typeorm';
import { AuditLog } from '../../audit/audit.module.js';
import { USHER_DATA_SOURCE } from '../../database/data-source.js';
import { databaseNow, inTransaction } from '../../database/sql.js';
import { countRequest, type MinuteLimit } from '../../http/minute-limit.js';
import { newToken } from '../../http/pages/form-tokens.js';
import { Limits } from '../../limits/limits.module.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import type { Actor } from '../../values/actor.js';
import { digestToken, generateToken } from '../tokens/token.js';
import { type AuthorizationRequest, type Query, responseUrl, single, stateOf } from './authorization-request.js';
import { Authorization, Consent } from '../../clients/authorization.entity.js';
import { ClientApplications } from '../../clients/client-applications.js';
import { ClientsService, findClient } from '../../clients/clients.service.js';
import { type Client, ClientApplication } from '../../clients/client.entity.js';
import type { Problem } from '../../http/problem.js';
import type { HttpResponse } from '../../http/exchange.js';
import { PageProblem, seeOther } from '../../http/pages/page.js';
import { AuthorizationSite } from './authorization-site.js';
import { Counter } from 'prom-client';
import { MetricsRegistry } from '../../telemetry/metrics.module.js';

/** A client, and the one of its redirect URIs that a request names. */
export interface AuthorizationTarget {
  client: Client;
  redirectUri: string;
  /** To be given back, also with an error. */
  state: string | null;
  isTrusted: boolean;
}

export const unknownApplication = (): Problem => new PageProblem(400, 'unknownApplication');
export const unknownRedirectUri = (): Problem => new PageProblem(400, 'unknownReturn');

const FORM_LIFETIME_MS = 600_000;
/** RFC 6749 §4.1.2 asks for at most ten minutes. A browser needs less than a second. */
const CODE_LIFETIME_MS = 60_000;
/** Requests of one owner that no application has used. Older ones are dropped, so that links cannot fill the table. */
export const MAX_OPEN = 20;
const MAX_DROPPED = 100;
/** For each owner. */
export const ASK_LIMIT: MinuteLimit = { name: 'authorization-requests', count: 60, what: 'requests for access' };
const AUDIT_TRUSTED_EVERY_MS = 86_400_000;

export interface Decision {
  /** The token in the form. */
  form: string;
  /** The browser's form cookie. */
  browser: string;
  ownerId: string;
  actor: Actor;
  isAllowed: boolean;
  /** The operator trusts the application, so nobody was asked. */
  isTrusted: boolean;
}

/** Where the answer goes. `code` is null if the owner declined. */
export type Answered = Pick<Authorization, 'redirectUri' | 'state'> & { code: string | null };

/** Authorisation requests that wait for the owner, and their codes. */
@Injectable()
export class Authorizations {
  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    private readonly clients: ClientsService,
    private readonly applications: ClientApplications,
    private readonly audit: AuditLog,
    private readonly limits: Limits,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {}

  /**
   * Finds out where the response of a request goes. Throws a {@link Problem} for a page, because without a valid redirect URI nothing may be sent there (RFC 6749 §4.1.2.1).
   * The URI may be left out if the client has only one.
   */
  async targetOf(query: Query): Promise<AuthorizationTarget> {
    const client = await this.clients.find(single(query, 'client_id') ?? '');
    const application = client && (await this.applications.find(client.id));
    // A disabled client is treated like an unknown one.
    if (!application || client.disabledAt !== null) throw unknownApplication();
    const given = single(query, 'redirect_uri');
    const { redirectUris, isTrusted } = application;
    const redirectUri = given ?? (redirectUris.length === 1 ? redirectUris[0] : undefined);
    if (given === undefined || redirectUri === undefined || !redirectUris.includes(redirectUri))
      throw unknownRedirectUri();
    return { client, redirectUri, state: stateOf(query), isTrusted };
  }

  /** Stores a request until the owner decides. Returns the token of the form, which is valid once, in this browser. */
  async ask(
    { client, redirectUri }: AuthorizationTarget,
    request: AuthorizationRequest,
    { ownerId, browser }: Pick<Decision, 'ownerId' | 'browser'>,
  ): Promise<string> {
    countRequest(this.limits, ASK_LIMIT, ownerId);
    const { manager } = this.dataSource;
    const form = newToken();
    const createdAt = await databaseNow(manager);
    await manager.insert(Authorization, {
      ...request,
      formDigest: digestToken(form),
      browserDigest: digestToken(browser),
      clientId: client.id,
      ownerId,
      redirectUri,
      createdAt,
      expiresAt: createdAt + FORM_LIFETIME_MS,
    });
    await dropOldest(manager, ownerId);
    return form;
  }

  /**
   * Stores the owner's answer. Returns where it goes, with a code if the owner allows it. Null if this form was sent before,
   * has expired, is another browser's or owner's, or if the client may not get a code at its redirect URI any more.
   */
  async answer(decision: Decision): Promise<Answered | null> {
    const code = decision.isAllowed ? generateToken('code', this.options.environment) : null;
    return inTransaction(this.dataSource, async (manager) => {
      const now = await databaseNow(manager);
      const row = pending(decision, now);
      const asked = await manager.findOneBy(Authorization, row);
      const change = code && { codeDigest: digestToken(code), expiresAt: now + CODE_LIFETIME_MS };
      const { affected } = await (change
        ? manager.update(Authorization, row, change)
        : manager.delete(Authorization, row));
      if (!asked || affected !== 1 || !(await mayReceive(manager, asked))) return null;
      const { ownerId, clientId } = asked;
      const { isTrusted, actor } = decision;
      const recent = { ownerId, clientId, givenAt: MoreThan(now - AUDIT_TRUSTED_EVERY_MS) };
      if (isTrusted && (await manager.existsBy(Consent, recent))) return { ...asked, code };
      if (change) await giveConsent(manager, asked, now);
      const action = change ? 'consent.given' : 'consent.declined';
      const detail = { owner: ownerId, ...(isTrusted && { trusted: true }) };
      await this.audit.record({ action, subject: `client:${clientId}`, actor, detail }, manager);
      return { ...asked, code };
    });
  }
}

/** Checked again, because an operator may have changed the client since it asked. */
async function mayReceive(manager: EntityManager, { clientId, redirectUri }: Authorization): Promise<boolean> {
  const client = await findClient(manager, clientId);
  const application = await manager.findOneBy(ClientApplication, { clientId });
  if (client?.disabledAt !== null || !client.grantTypes.includes('authorization_code')) return false;
  return application?.redirectUris.includes(redirectUri) ?? false;
}

/** The condition decides: of concurrent answers only one finds the row. */
const pending = ({ form, browser, ownerId }: Decision, now: number) => ({
  formDigest: digestToken(form),
  browserDigest: digestToken(browser),
  ownerId,
  codeDigest: IsNull(),
  expiresAt: MoreThan(now),
});

/** A used request is kept, because it is needed to notice a replay of its code. */
async function dropOldest(manager: EntityManager, ownerId: string): Promise<void> {
  const dropped = await manager.find(Authorization, {
    select: { formDigest: true },
    where: { ownerId, usedAt: IsNull() },
    order: { createdAt: 'DESC' },
    skip: MAX_OPEN,
    take: MAX_DROPPED,
  });
  const digests = dropped.map(({ formDigest }) => formDigest).sort();
  if (digests.length > 0) await manager.delete(Authorization, { formDigest: In(digests), usedAt: IsNull() });
}

async function giveConsent(manager: EntityManager, { ownerId, clientId }: Authorization, givenAt: number) {
  await manager
    .createQueryBuilder()
    .insert()
    .into(Consent)
    .values({ ownerId, clientId, givenAt })
    .orUpdate(['given_at'], ['owner_id', 'client_id'])
    .updateEntity(false)
    .execute();
}

/** The result if the owner does not sign in, or does not allow it. */
export const DECLINED = { error: 'access_denied', error_description: 'the account holder declined' };

/** Ends authorisation requests: with a code, or with one of the errors of RFC 6749 §4.1.2.1. */
@Injectable()
export class AuthorizationResponses {
  private readonly responses: Counter<'result'>;

  constructor(
    registry: MetricsRegistry,
    private readonly site: AuthorizationSite,
  ) {
    this.responses = new Counter({
      name: 'usher_authorization_responses_total',
      help: 'Responses to authorisation requests, by result: code, or the error.',
      labelNames: ['result'],
      registers: [registry],
    });
    for (const result of ['code', 'access_denied']) this.responses.inc({ result }, 0);
  }

  /** Sends the browser to the client with the result, the state and the issuer (RFC 9207). */
  send(
    response: HttpResponse,
    { redirectUri, state }: Pick<AuthorizationTarget, 'redirectUri' | 'state'>,
    result: Record<string, string>,
  ): void {
    this.responses.inc({ result: result.error ?? 'code' });
    seeOther(response, responseUrl(redirectUri, { ...result, state, iss: this.site.issuer }));
  }
}
