import { Inject, Injectable } from '@nestjs/common';
import { z } from 'zod';
import { type DataSource, In, Not } from 'typeorm';
import { AuditLog } from '../audit/audit.module.js';
import { USHER_DATA_SOURCE } from '../database/data-source.js';
import { inTransaction } from '../database/sql.js';
import { unprocessable, validated } from '../http/problem.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../usher.options.js';
import type { Actor } from '../values/actor.js';
import { requiredId } from '../values/identifier.js';
import { endOpenAuthorizations } from './authorization.entity.js';
import { redirectUriFault } from './redirect-uri.js';
import { Client, ClientApplication, GRANT_TYPES, type GrantType, USUAL_GRANTS } from './client.entity.js';
import { getClient } from './clients.service.js';

/** What to change; what is left out stays as it is. */
export interface ApplicationChange {
  /** All redirect URIs of the client: https, in the sandbox also http on this machine. */
  redirectUris?: string[] | undefined;
  /** Default with redirect URIs: the client's grants and `authorization_code`. */
  grantTypes?: GrantType[] | undefined;
  /** Whether the operator vouches for it, so that resource owners are not asked for their consent. */
  isTrusted?: boolean | undefined;
}

/** The names and types of {@link ApplicationChange}, for callers in JavaScript. */
const CHANGE = z.strictObject({
  redirectUris: z.array(z.string()).optional(),
  grantTypes: z.array(z.string()).optional(),
  isTrusted: z.boolean().optional(),
});
const MAX_REDIRECT_URIS = 10;

/** Which grants a client may use, and its redirect URIs for the authorisation-code grant. */
@Injectable()
export class ClientApplications {
  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    private readonly audit: AuditLog,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {}

  /** Null if the client has no redirect URI. */
  async find(clientId: string): Promise<ClientApplication | null> {
    return this.dataSource.manager.findOneBy(ClientApplication, { clientId: requiredId(clientId) });
  }

  /** 400 for a field of another type or name, 422 for an invalid redirect URI or an unknown grant. */
  private check(change: ApplicationChange): void {
    validated(CHANGE, change ?? null);
    const { redirectUris = [], grantTypes = [] } = change;
    if (redirectUris.length > MAX_REDIRECT_URIS) throw unprocessable(`use at most ${MAX_REDIRECT_URIS} redirect URIs`);
    for (const uri of redirectUris) {
      const fault = redirectUriFault(uri, this.options.environment === 'sandbox');
      if (fault !== null) throw unprocessable(`the redirect URI ${uri.slice(0, 200)} ${fault}`);
    }
    const unknown = grantTypes.find((grant) => !GRANT_TYPES.includes(grant));
    if (unknown !== undefined) throw unprocessable(`${unknown} is not a grant; use ${GRANT_TYPES.join(', ')}`);
  }

  /** For a client that is not created yet: 422 for values that {@link configure} would refuse. */
  checkNew(change: ApplicationChange): void {
    this.check(change);
    const { redirectUris = [] } = change;
    checkFit({ ...change, redirectUris, grantTypes: grantsOf({ grantTypes: USUAL_GRANTS }, change) });
  }

  /**
   * Ends the open forms and codes that the client could not get any more. 404 for an unknown client, 400 or 422 for
   * values that are invalid or do not go together.
   */
  async configure(clientId: string, change: ApplicationChange, actor?: Actor): Promise<ClientApplication | null> {
    this.check(change);
    await inTransaction(this.dataSource, async (manager) => {
      const client = await getClient(manager, clientId, 'pessimistic_write');
      const known = await manager.findOneBy(ClientApplication, { clientId });
      const redirectUris = change.redirectUris ?? known?.redirectUris ?? [];
      const isTrusted = (change.isTrusted ?? known?.isTrusted ?? false) && redirectUris.length > 0;
      const grantTypes = grantsOf(client, change);
      checkFit({ ...change, grantTypes, redirectUris });
      await manager.update(Client, { id: clientId }, { grantTypes });
      await manager.delete(ClientApplication, { clientId });
      if (redirectUris.length > 0) await manager.insert(ClientApplication, { clientId, redirectUris, isTrusted });
      const allowed = grantTypes.includes('authorization_code') ? redirectUris : [];
      await endOpenAuthorizations(manager, { clientId, redirectUri: Not(In(allowed)) });
      const detail = {
        redirectUris: redirectUris.join(' '),
        grants: grantTypes.join(' '),
        isTrusted,
        redirectUrisBefore: known?.redirectUris.join(' ') ?? '',
        grantsBefore: client.grantTypes.join(' '),
        isTrustedBefore: known?.isTrusted ?? false,
      };
      await this.audit.record(
        { action: 'client.application-set', subject: `client:${clientId}`, actor, detail },
        manager,
      );
    });
    return this.find(clientId);
  }
}

function grantsOf(
  client: { grantTypes: readonly GrantType[] },
  { redirectUris = [], grantTypes }: ApplicationChange,
): GrantType[] {
  const added: GrantType[] = redirectUris.length > 0 ? ['authorization_code'] : [];
  return [...new Set(grantTypes ?? [...client.grantTypes, ...added])];
}

type WholeApplication = ApplicationChange & { redirectUris: string[]; grantTypes: GrantType[] };

function checkFit({ grantTypes, redirectUris, isTrusted }: WholeApplication): void {
  if (grantTypes.length === 0) throw unprocessable(`a client needs a grant; use ${GRANT_TYPES.join(', ')}`);
  if (grantTypes.includes('authorization_code') && redirectUris.length === 0)
    throw unprocessable('authorization_code needs a redirect URI; add one');
  if (isTrusted && redirectUris.length === 0)
    throw unprocessable('only a client with a redirect URI can be trusted; add one');
}
