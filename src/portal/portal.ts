import { Inject, Injectable } from '@nestjs/common';
import { z } from 'zod';
import {
  type DataSource,
  type EntityManager,
  type FindOptionsWhere,
  IsNull,
  MoreThan,
  MoreThanOrEqual,
  Not,
} from 'typeorm';
import { AuditLog } from '../audit/audit.module.js';
import { Sessions } from '../auth/sign-in/sessions.js';
import { digestToken, generateToken } from '../auth/tokens/token.js';
import { Client, ClientSecret } from '../clients/client.entity.js';
import { getClient } from '../clients/clients.service.js';
import { PortalLink, PortalSession } from '../clients/portal.entity.js';
import { ClientSecrets } from '../clients/secrets/client-secrets.js';
import { USHER_DATA_SOURCE } from '../database/data-source.js';
import { databaseNow, inTransaction } from '../database/sql.js';
import { conflict, notFound, unprocessable, validated } from '../http/problem.js';
import { UsherNamedModule } from '../telemetry/usher-named.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../usher.options.js';
import { type Actor, actor, fitting } from '../values/actor.js';
import { newId, requiredId } from '../values/identifier.js';

export const PORTAL_PATH = '/portal';
export const OPEN_PATH = `${PORTAL_PATH}/open`;
const MINUTE_MS = 60_000;
const DAY_MS = 1_440 * MINUTE_MS;
const MAX_VALID_MS = 30 * DAY_MS;
/** How long after a secret was issued a link may still show it. */
const HAND_OVER_MS = 60 * MINUTE_MS;
const MAX_LISTED = 20;

/** What {@link PortalLinks.create} takes. */
export interface NewPortalLink {
  /** Whether the person who opens it may change something; default false. */
  mayChange?: boolean;
  /** How long it can be opened, in whole milliseconds, from 1 minute to 30 days; default 7 days. */
  validMs?: number;
  /** Whether it shows the newest secret, once; default false. */
  showsSecret?: boolean;
  /** For the audit. Default: the application, `host`. */
  actor?: Actor | undefined;
}

const GIVEN = z.strictObject({
  mayChange: z.boolean().optional(),
  validMs: z.unknown().optional(),
  showsSecret: z.boolean().optional(),
  actor: z.unknown().optional(),
});

/** A link that was made just now. */
export interface MadePortalLink {
  id: string;
  /** Contains the token, which is not stored. Without the option `publicUrl` it is a path. */
  url: string;
  /** In milliseconds since 1970. */
  expiresAt: number;
}

/** The links with which clients enter their portal. Each signs in once. */
@Injectable()
export class PortalLinks {
  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    private readonly audit: AuditLog,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {}

  /**
   * 404 for an unknown client, 409 for a disabled one, and for a secret that is older than an hour or that a link has shown;
   * 400 for an unknown option, 422 for an invalid duration.
   */
  async create(clientId: string, given: NewPortalLink = {}): Promise<MadePortalLink> {
    validated(GIVEN, given);
    const { mayChange = false, validMs = 7 * DAY_MS, showsSecret = false, actor = this.options.actor } = given;
    if (!(Number.isInteger(validMs) && validMs >= MINUTE_MS && validMs <= MAX_VALID_MS))
      throw unprocessable('a link is valid for 1 minute to 30 days, in whole milliseconds');
    const { environment, publicUrl } = this.options;
    const token = generateToken('portal', environment);
    return inTransaction(this.dataSource, async (manager) => {
      const { disabledAt } = await getClient(manager, clientId, 'pessimistic_write');
      if (disabledAt !== null) throw conflict('the client is disabled; enable it first');
      const createdAt = await databaseNow(manager);
      const recent = { clientId, createdAt: MoreThanOrEqual(createdAt - HAND_OVER_MS) };
      const secret = showsSecret && (await unshownSecret(manager, recent));
      if (secret === null)
        throw conflict(
          'a link shows a secret only once, and only within an hour after the secret was issued; issue a new secret first',
        );
      const id = newId(environment, createdAt);
      const expiresAt = createdAt + validMs;
      await manager.insert(PortalLink, {
        id,
        clientId,
        digest: digestToken(token),
        mayChange,
        secretId: secret ? secret.id : null,
        createdBy: fitting(actor).name,
        createdAt,
        expiresAt,
      });
      const detail = { link: id, mayChange, showsSecret };
      await this.audit.record({ action: 'portal.link-created', subject: `client:${clientId}`, actor, detail }, manager);
      return { id, url: `${publicUrl ?? ''}${OPEN_PATH}/${token}`, expiresAt };
    });
  }

  /** The newest links of a client. */
  async list(clientId: string): Promise<PortalLink[]> {
    const where = { clientId: requiredId(clientId) };
    return this.dataSource.manager.find(PortalLink, { where, order: { id: 'DESC' }, take: MAX_LISTED });
  }

  /** Nobody can open the link any more, and the session that it began ends. 404 if the client has no such link. */
  async withdraw(clientId: string, id: string, actor: Actor = this.options.actor): Promise<void> {
    await inTransaction(this.dataSource, async (manager) => {
      const withdrawnAt = await databaseNow(manager);
      const open = { clientId: requiredId(clientId), id: requiredId(id), withdrawnAt: IsNull() };
      const { affected } = await manager.update(PortalLink, open, { withdrawnAt });
      if (affected !== 1) throw notFound('there is no such link, or it is withdrawn already');
      await manager.delete(PortalSession, { linkId: id });
      await this.audit.record(
        { action: 'portal.link-withdrawn', subject: `client:${clientId}`, actor, detail: { link: id } },
        manager,
      );
    });
  }
}

/** The client whose portal it is, and whether this session may change something. */
export interface PortalOwner {
  clientId: string;
  name: string;
  mayChange: boolean;
}

/** The sessions of clients in their portal. A link begins one. */
@Injectable()
export class PortalSessions extends Sessions<PortalSession, PortalOwner> {
  constructor(
    @Inject(USHER_DATA_SOURCE) dataSource: DataSource,
    private readonly secrets: ClientSecrets,
    private readonly audit: AuditLog,
    @Inject(USHER_OPTIONS) { portalIdleMs, portalSessionMs }: ResolvedOptions,
  ) {
    super(dataSource, PortalSession, Math.min(portalIdleMs, portalSessionMs), portalSessionMs);
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
      // Locks the client first, as disabling it and replacing a leaked secret do: either this waits, or they end the
      // session.
      const client = await getClient(manager, clientId, 'pessimistic_write');
      if (client.disabledAt !== null) return 'disabled';
      const unshown = secretId && (await unshownSecret(manager, { id: secretId }));
      const now = await databaseNow(manager);
      const { affected } = await manager.update(
        PortalLink,
        { id, openedAt: IsNull(), withdrawnAt: IsNull(), expiresAt: MoreThan(now) },
        { openedAt: now, openedFrom: address },
      );
      if (affected !== 1) return null;
      const secret = unshown ? this.secrets.open(unshown) : null;
      const session = await this.start(manager, (begun) => ({ ...begun, clientId, linkId: id, mayChange }));
      await this.audit.record(
        {
          action: 'portal.signed-in',
          subject: `client:${clientId}`,
          actor: actor('client', clientId, address),
          detail: { link: id, mayChange, showsSecret: secret !== null },
        },
        manager,
      );
      return { token: session, client, secret, showsSecret: secretId !== null };
    });
  }

  protected async ownerOf({ clientId, mayChange }: PortalSession): Promise<PortalOwner | null> {
    const where = { id: clientId, disabledAt: IsNull() };
    const client = await this.dataSource.manager.findOne(Client, { select: { name: true }, where });
    return client && { clientId, name: client.name, mayChange };
  }
}

/** Makes the links with which clients enter their portal, which the server has at `/portal`. */
@UsherNamedModule({ providers: [PortalLinks, PortalSessions], exports: [PortalLinks, PortalSessions] })
export class PortalModule {}

/** The secret that matches, if it is the newest of its client and no link has shown it. */
async function unshownSecret(manager: EntityManager, which: FindOptionsWhere<ClientSecret>) {
  const secret = await manager.findOneBy(ClientSecret, { ...which, expiresAt: IsNull() });
  if (!secret) return null;
  const { id: secretId, clientId } = secret;
  const isShown = await manager.existsBy(PortalLink, { clientId, secretId, openedAt: Not(IsNull()) });
  return isShown ? null : secret;
}
