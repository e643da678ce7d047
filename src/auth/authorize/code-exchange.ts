import { hash } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { type DataSource, type EntityManager, IsNull, MoreThan } from 'typeorm';
import { AuditLog } from '../../audit/audit.module.js';
import { ClientChanged, ClientSecrets, type Requester } from '../../clients/secrets/client-secrets.js';
import { USHER_DATA_SOURCE } from '../../database/data-source.js';
import { databaseNow, inTransaction } from '../../database/sql.js';
import { OAuthError } from '../../http/oauth-error.js';
import type { Parameters } from '../../http/oauth-route.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { actor } from '../../values/actor.js';
import { newId } from '../../values/identifier.js';
import { AccessTokens } from '../bearer/access-tokens.js';
import { EXPIRY_MARGIN_MS, Grant } from '../tokens/grant.entity.js';
import { isGiven, requiredText } from '../tokens/token-request.js';
import { digestToken, type NewTokens, newTokens } from '../tokens/token.js';
import { Authorization } from '../../clients/authorization.entity.js';
import { revokeGrants } from './connected-applications.js';

interface Exchanged {
  grantId: string;
  tokens: NewTokens;
}

interface Refused {
  reason: string;
  /** The grant that a replay of the code ended. */
  revoked: string | null;
}

/** Exchanges the code of an authorisation for tokens (RFC 6749 §4.1.3, RFC 7636 §4.6). */
@Injectable()
export class CodeExchange {
  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
    private readonly secrets: ClientSecrets,
    private readonly audit: AuditLog,
    private readonly accessTokens: AccessTokens,
  ) {}

  /**
   * A code is valid once. A second valid request is refused and revokes what the first one got (RFC 6749 §4.1.2); one with
   * another client, redirect URI or verifier changes nothing. `address`: of the request, for the audit.
   * @throws ClientChanged
   */
  async exchange(client: Requester, parameters: Parameters, address: string | null): Promise<Exchanged> {
    const code = requiredText(parameters, 'code');
    const verifier = requiredText(parameters, 'code_verifier');
    if (!VERIFIER.test(verifier)) throw new OAuthError('invalid_request', VERIFIER_RULE);
    const redirectUri = isGiven(parameters.redirect_uri) ? requiredText(parameters, 'redirect_uri') : null;
    const outcome = await inTransaction(this.dataSource, async (manager) => {
      if (!(await this.secrets.isStillValid(client, manager))) throw new ClientChanged();
      const found = await manager.findOneBy(Authorization, { codeDigest: digestToken(code) });
      if (found?.clientId !== client.clientId) throw unknownCode();
      // Only the client of the code gets here, so these reasons reveal nothing to others.
      if (found.codeChallenge !== challengeOf(verifier)) throw invalidCode(WRONG_VERIFIER);
      if (redirectUri !== null && redirectUri !== found.redirectUri) throw invalidCode(WRONG_REDIRECT_URI);
      return this.use(manager, client, found, address);
    });
    if ('tokens' in outcome) return outcome;
    if (outcome.revoked !== null) this.accessTokens.forgetGrants([outcome.revoked]);
    throw invalidCode(outcome.reason);
  }

  /** One conditional update decides which request uses the code. */
  private async use(
    manager: EntityManager,
    client: Requester,
    { formDigest, ownerId }: Authorization,
    address: string | null,
  ): Promise<Exchanged | Refused> {
    const { environment, accessTokenSeconds, refreshTokenSeconds } = this.options;
    const now = await databaseNow(manager);
    const grantId = newId(environment, now);
    const unused = { formDigest, usedAt: IsNull(), expiresAt: MoreThan(now) };
    const { affected } = await manager.update(Authorization, unused, { usedAt: now, grantId });
    if (affected !== 1) return this.revoke(manager, client, formDigest, address);
    const { tokens, digests } = newTokens(environment);
    await manager.insert(Grant, {
      id: grantId,
      clientId: client.clientId,
      ownerId,
      // The generation at the authentication: if tokens were revoked since then, the new ones are invalid too.
      generation: client.generation,
      ...digests,
      createdAt: now,
      accessExpiresAt: now + accessTokenSeconds * 1_000,
      expiresAt: now + refreshTokenSeconds * 1_000 + EXPIRY_MARGIN_MS,
    });
    return { grantId, tokens };
  }

  /** Revokes nothing if the code has only expired, or if another replay has revoked the grant already. */
  private async revoke(
    manager: EntityManager,
    { clientId }: Requester,
    formDigest: string,
    address: string | null,
  ): Promise<Refused> {
    const used = await manager.findOne(Authorization, { where: { formDigest }, lock: { mode: 'pessimistic_write' } });
    if (!used) throw unknownCode();
    if (used.usedAt === null) return { reason: EXPIRED, revoked: null };
    if (used.grantId === null) return { reason: USED, revoked: null };
    await manager.update(Authorization, { formDigest }, { grantId: null });
    await revokeGrants(manager, { id: used.grantId });
    const detail = { owner: used.ownerId, grant: used.grantId };
    const by = actor('client', clientId, address);
    await this.audit.record({ action: 'code.replayed', subject: `client:${clientId}`, actor: by, detail }, manager);
    return { reason: USED, revoked: used.grantId };
  }
}

/** RFC 7636 §4.1. */
const VERIFIER = /^[\w.~-]{43,128}$/;
const VERIFIER_RULE = 'code_verifier must have 43 to 128 characters: letters, digits and - . _ ~ (RFC 7636)';

/** RFC 7636 §4.2, S256. */
const challengeOf = (verifier: string): string => hash('sha256', verifier, 'base64url');

const WRONG_VERIFIER =
  'the SHA-256 of code_verifier in base64url is not the code_challenge of the authorisation request';
const WRONG_REDIRECT_URI =
  'redirect_uri differs from that of the authorisation request; send the same one, or leave it out';
const EXPIRED = 'the code has expired; start again, and exchange the code at once';
const USED = 'the code was used before, so its tokens are revoked; start again';

const invalidCode = (reason: string): OAuthError => new OAuthError('invalid_grant', reason);

export const unknownCode = (): OAuthError =>
  invalidCode('the code is unknown, expired or withdrawn, or was issued to another client; start again');
