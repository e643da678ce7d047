import { Inject, Injectable } from '@nestjs/common';
import { type DataSource, IsNull, MoreThan } from 'typeorm';
import { AuditLog } from '../audit/audit.module.js';
import { Sessions } from '../auth/sign-in/sessions.js';
import { digestToken } from '../auth/tokens/token.js';
import { Client, ClientSecret } from '../clients/client.entity.js';
import { PortalLink, PortalSession } from '../clients/portal.entity.js';
import { ClientSecrets } from '../clients/secrets/client-secrets.js';
import { USHER_DATA_SOURCE } from '../database/data-source.js';
import { databaseNow, inTransaction } from '../database/sql.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../usher.options.js';
import { actor } from '../values/actor.js';
import { wasShown } from './portal-links.js';

/** Who is signed in to a portal. */
export interface PortalOwner {
  client: Client;
  mayChange: boolean;
}

/** The sessions of clients in their portal. A link begins one. */
@Injectable()
export class PortalSessions extends Sessions<PortalSession, PortalOwner> {
  protected readonly entity = PortalSession;
  protected readonly idleMs: number;
  protected override readonly absoluteMs: number;

  constructor(
    @Inject(USHER_DATA_SOURCE) dataSource: DataSource,
    private readonly secrets: ClientSecrets,
    private readonly audit: AuditLog,
    @Inject(USHER_OPTIONS) { portalIdleMs, portalSessionMs }: ResolvedOptions,
  ) {
    super(dataSource);
    this.absoluteMs = portalSessionMs;
    this.idleMs = Math.min(portalIdleMs, portalSessionMs);
  }

  /**
   * Signs in with the token of a link; of several at the same moment one succeeds. `disabled`: the link is not used up. Null
   * if it was opened or withdrawn, or has expired. `secret`: null if it shows none, or if that was replaced or shown before.
   */
  async open(token: string, address: string | null) {
    return inTransaction(this.dataSource, async (manager) => {
      const link = await manager.findOneBy(PortalLink, { digest: digestToken(token) });
      if (!link) return null;
      const { id, clientId, mayChange, secretId } = link;
      // The client first, as where it is disabled or its secret has leaked: this waits for that, or is ended by it.
      const lock = { mode: 'pessimistic_write' } as const;
      const client = await manager.findOneOrFail(Client, { where: { id: clientId }, lock });
      if (client.disabledAt !== null) return 'disabled';
      const isShown = secretId && (await wasShown(manager, clientId, secretId));
      const now = await databaseNow(manager);
      const { affected } = await manager.update(
        PortalLink,
        { id, openedAt: IsNull(), withdrawnAt: IsNull(), expiresAt: MoreThan(now) },
        { openedAt: now, openedFrom: address },
      );
      if (affected !== 1) return null;
      const newest =
        secretId && !isShown && (await manager.findOneBy(ClientSecret, { id: secretId, expiresAt: IsNull() }));
      const secret = newest ? this.secrets.open(newest) : null;
      const session = await this.start(manager, (begun) => ({ ...begun, clientId, linkId: id, mayChange }));
      const by = { subject: `client:${clientId}`, actor: actor('client', clientId, address) };
      const detail = { link: id, mayChange, showsSecret: secret !== null };
      await this.audit.record({ action: 'portal.signed-in', ...by, detail }, manager);
      return { token: session, client, secret, showsSecret: secretId !== null };
    });
  }

  protected async ownerOf({ clientId, mayChange }: PortalSession): Promise<PortalOwner | null> {
    const client = await this.dataSource.manager.findOneBy(Client, { id: clientId, disabledAt: IsNull() });
    return client && { client, mayChange };
  }
}
