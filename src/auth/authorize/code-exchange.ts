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
      if (found?.clientId !== client.clientId) return null;
      const isValid =
        found.codeChallenge === challengeOf(verifier) && (redirectUri === null || redirectUri === found.redirectUri);
      return isValid ? this.use(manager, client, found, address) : null;
    });
    if (outcome && 'tokens' in outcome) return outcome;
    if (outcome) this.accessTokens.forgetGrants([outcome.revoked]);
    throw invalidCode();
  }

  /** One conditional update decides which request uses the code. */
  private async use(
    manager: EntityManager,
    client: Requester,
    { formDigest, ownerId }: Authorization,
    address: string | null,
  ): Promise<Exchanged | { revoked: string } | null> {
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

  /** Null if the code has only expired, or if another replay has revoked the grant already. */
  private async revoke(
    manager: EntityManager,
    { clientId }: Requester,
    formDigest: string,
    address: string | null,
  ): Promise<{ revoked: string } | null> {
    const used = await manager.findOne(Authorization, { where: { formDigest }, lock: { mode: 'pessimistic_write' } });
    if (!used?.grantId) return null;
    await manager.update(Authorization, { formDigest }, { grantId: null });
    await revokeGrants(manager, { id: used.grantId });
    const detail = { owner: used.ownerId, grant: used.grantId };
    const by = actor('client', clientId, address);
    await this.audit.record({ action: 'code.replayed', subject: `client:${clientId}`, actor: by, detail }, manager);
    return { revoked: used.grantId };
  }
}

/** RFC 7636 §4.1. */
const VERIFIER = /^[\w.~-]{43,128}$/;
const VERIFIER_RULE = 'code_verifier must have 43 to 128 characters: letters, digits and - . _ ~ (RFC 7636)';

/** RFC 7636 §4.2, S256. */
const challengeOf = (verifier: string): string => hash('sha256', verifier, 'base64url');

export const invalidCode = (): OAuthError =>
  new OAuthError(
    'invalid_grant',
    'the code is unknown, expired or already used, or code_verifier or redirect_uri differs; start again',
  );
