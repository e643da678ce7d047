import { Inject, Injectable } from '@nestjs/common';
import { type DataSource, type EntityManager, IsNull, MoreThan } from 'typeorm';
import { AuditLog } from '../../audit/audit.module.js';
import { USHER_DATA_SOURCE } from '../../database/data-source.js';
import { databaseNow, inTransaction } from '../../database/sql.js';
import { newToken } from '../../http/pages/form-token.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import type { Actor } from '../../values/actor.js';
import { digestToken, generateToken } from '../tokens/token.js';
import { type AuthorizationRequest, type Query, single } from './authorization-request.js';
import { Authorization, Consent } from './authorization.entity.js';
import { ClientApplications } from '../../clients/client-applications.js';
import { ClientsService } from '../../clients/clients.service.js';
import type { Client } from '../../clients/client.entity.js';
import { Problem } from '../../http/problem.js';
import { Counter } from 'prom-client';
import { MetricsRegistry } from '../../telemetry/metrics.module.js';

/** A client, and the one of its redirect URIs that a request names. */
export interface AuthorizationTarget {
  client: Client;
  redirectUri: string;
  isTrusted: boolean;
}

const unknown = (reason: string): Problem =>
  new Problem(400, 'This link does not work', `${reason} Please tell the people who run the application.`);
export const unknownApplication = (): Problem => unknown('The application is not known here.');
export const unknownRedirectUri = (): Problem =>
  unknown('The address to return to is not one that the application registered.');

/** How long an owner may think about it. */
const FORM_LIFETIME_MS = 600_000;
/** RFC 6749 §4.1.2 asks for at most ten minutes. A browser needs less than a second. */
const CODE_LIFETIME_MS = 60_000;

/** The owner's answer on the consent page. */
export interface Decision {
  /** The token in the form. */
  form: string;
  /** The browser's form cookie. */
  browser: string;
  ownerId: string;
  actor: Actor;
}

/** Where the answer goes. */
export type Answered = Pick<Authorization, 'clientId' | 'redirectUri' | 'state'>;

/** Authorization requests that wait for the owner, and their codes. */
@Injectable()
export class Authorizations {
  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    private readonly clients: ClientsService,
    private readonly applications: ClientApplications,
    private readonly audit: AuditLog,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {}

  /**
   * Finds out where the response of a request goes. Throws a {@link Problem} for a page, because without a valid redirect URI nothing may be sent there (RFC 6749 §4.1.2.1).
   * The URI may be left out if the client has only one.
   */
  async targetOf(query: Query): Promise<AuthorizationTarget> {
    const client = await this.clients.find(single(query, 'client_id') ?? '');
    const application = client && (await this.applications.find(client.id));
    // A disabled client is like an unknown one.
    if (!application || client.disabledAt !== null) throw unknownApplication();
    const given = single(query, 'redirect_uri');
    const { redirectUris, isTrusted } = application;
    const redirectUri = given ?? (redirectUris.length === 1 ? redirectUris[0] : undefined);
    if (given === undefined || redirectUri === undefined || !redirectUris.includes(redirectUri))
      throw unknownRedirectUri();
    return { client, redirectUri, isTrusted };
  }

  /** Stores a request until the owner decides. Returns the token of the form; it is good once, in this browser. */
  async ask(
    { client, redirectUri }: AuthorizationTarget,
    request: AuthorizationRequest,
    { ownerId, browser }: Pick<Decision, 'ownerId' | 'browser'>,
  ): Promise<string> {
    const form = newToken();
    const createdAt = await databaseNow(this.dataSource.manager);
    await this.dataSource.manager.insert(Authorization, {
      ...request,
      formDigest: digestToken(form),
      browserDigest: digestToken(browser),
      clientId: client.id,
      ownerId,
      redirectUri,
      createdAt,
      expiresAt: createdAt + FORM_LIFETIME_MS,
    });
    return form;
  }

  /** The owner allows it: returns the code. Null if this form was sent before, has expired, or is another browser's or owner's. */
  async allow(decision: Decision): Promise<(Answered & { code: string }) | null> {
    const code = generateToken('code', this.options.environment);
    return inTransaction(this.dataSource, async (manager) => {
      const now = await databaseNow(manager);
      const change = { codeDigest: digestToken(code), expiresAt: now + CODE_LIFETIME_MS };
      const { affected } = await manager.update(Authorization, pending(decision, now), change);
      if (affected !== 1) return null;
      const answered = await manager.findOneByOrFail(Authorization, { codeDigest: change.codeDigest });
      await giveConsent(manager, answered, now);
      await this.record('consent.given', decision, answered, manager);
      return { ...answered, code };
    });
  }

  /** The owner declines. Null as with {@link allow}. */
  async decline(decision: Decision): Promise<Answered | null> {
    return inTransaction(this.dataSource, async (manager) => {
      const now = await databaseNow(manager);
      const asked = await manager.findOneBy(Authorization, pending(decision, now));
      const { affected } = await manager.delete(Authorization, pending(decision, now));
      if (!asked || affected !== 1) return null;
      await this.record('consent.declined', decision, asked, manager);
      return asked;
    });
  }

  private record(
    action: 'consent.given' | 'consent.declined',
    { actor }: Decision,
    { clientId, ownerId }: Authorization,
    manager: EntityManager,
  ): Promise<void> {
    return this.audit.record({ action, subject: `client:${clientId}`, actor, detail: { owner: ownerId } }, manager);
  }
}

/** The condition decides: of concurrent answers only one finds the row. */
const pending = ({ form, browser, ownerId }: Decision, now: number) => ({
  formDigest: digestToken(form),
  browserDigest: digestToken(browser),
  ownerId,
  codeDigest: IsNull(),
  expiresAt: MoreThan(now),
});

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

/** How an authorization request ended: with a code, or with one of the errors of RFC 6749 §4.1.2.1. */
@Injectable()
export class AuthorizationEvents {
  private readonly responses: Counter<'result'>;

  constructor(registry: MetricsRegistry) {
    this.responses = new Counter({
      name: 'usher_authorization_responses_total',
      help: 'Responses to authorization requests, by result: code, or the error.',
      labelNames: ['result'],
      registers: [registry],
    });
    for (const result of ['code', 'access_denied']) this.responses.inc({ result }, 0);
  }

  responded(result: string): void {
    this.responses.inc({ result });
  }
}
