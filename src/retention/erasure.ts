import { Inject, Injectable, Logger } from '@nestjs/common';
import { type DataSource, type EntityManager, In, MoreThan } from 'typeorm';
import { AuditLog } from '../audit/audit.module.js';
import { Authorization, Consent } from '../clients/authorization.entity.js';
import { ConnectedApplications } from '../auth/authorize/connected-applications.js';
import { AccessToken, Grant } from '../auth/tokens/grant.entity.js';
import { Client, ClientApplication, ClientSecret } from '../clients/client.entity.js';
import { unknownClient } from '../clients/clients.service.js';
import { ContactNotice, PortalLink, PortalSession } from '../clients/portal.entity.js';
import { USHER_DATA_SOURCE } from '../database/data-source.js';
import { MAX_IDS } from '../database/rows.js';
import { inTransaction } from '../database/sql.js';
import { conflict } from '../http/problem.js';
import { Member, MemberSession } from '../members/member.entity.js';
import { MembersService } from '../members/members.service.js';
import { IdempotencyKey, MovieOrder, OrderCounter } from '../orders/movie-order.entity.js';
import type { Actor } from '../values/actor.js';
import { ContactState, FailingHost } from '../webhooks/contact/failing-host.entity.js';
import { DeliveryFigure } from '../webhooks/figures/delivery-figure.entity.js';
import { DeliveryQueue } from '../webhooks/queue/delivery.queue.js';
import { ResentWebhook, WebhookResend } from '../webhooks/undelivered/webhook-resend.entity.js';
import {
  DeliveredReference,
  DeliveryPause,
  type PauseSubject,
  Webhook,
  WebhookAttempt,
} from '../webhooks/webhook.entity.js';
import { WebhookModule } from '../webhooks/webhook.module.js';
import { UsherNamedModule } from '../telemetry/usher-named.js';

interface ErasureOptions {
  onProgress?: (done: number) => void;
  actor?: Actor | undefined;
}

/** How many rows of each kind were deleted. */
type Erased = Record<keyof typeof ROWS, number>;

/** Whose rows: those of a client, or those of a resource owner at all clients. */
type Holder = { clientId: string } | { ownerId: string };

interface Rows {
  entity: new () => { clientId: string; ownerId: string | null };
  /** The property that tells the rows of one holder apart. */
  key: string;
}

/**
 * Webhooks first, so that nothing more is sent. References, tokens and grants have no index on the client, because it would
 * cost more than it saves: their tables are read through once.
 */
const ROWS = {
  webhooks: { entity: Webhook, key: 'id' },
  orders: { entity: MovieOrder, key: 'id' },
  references: { entity: DeliveredReference, key: 'webhookId' },
  idempotencyKeys: { entity: IdempotencyKey, key: 'key' },
  accessTokens: { entity: AccessToken, key: 'digest' },
  grants: { entity: Grant, key: 'id' },
} satisfies Record<string, Rows>;
const KINDS = Object.keys(ROWS) as (keyof Erased)[];

/** Rows that are deleted together with the client's row, because they are few. */
const OWNED_BY_CLIENT = [
  Authorization,
  Consent,
  ClientApplication,
  ClientSecret,
  OrderCounter,
  PortalLink,
  PortalSession,
  ContactNotice,
];

const BATCH = 500;

/**
 * Deletes a disabled client or member with everything that belongs to it, in short transactions. Its own row is deleted last:
 * after an interruption, the same call finishes the work. The audit keeps its id and how many rows were deleted.
 */
@Injectable()
export class Erasure {
  private readonly logger = new Logger('Usher erasure');

  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    private readonly deliveries: DeliveryQueue,
    private readonly members: MembersService,
    private readonly applications: ConnectedApplications,
    private readonly audit: AuditLog,
  ) {}

  /** 409 while the client is enabled, 404 if nothing of it exists and the audit has no erasure of it. */
  async eraseClient(clientId: string, { onProgress, actor }: ErasureOptions = {}): Promise<Erased> {
    // MySQL ignores trailing spaces when it compares ids. Figures of all clients have an empty one.
    if (clientId === '' || clientId.trim() !== clientId) throw unknownClient(clientId);
    const { manager } = this.dataSource;
    const subject: PauseSubject = `client:${clientId}`;
    const client = await manager.findOneBy(Client, { id: clientId });
    if (client) {
      refuseEnabled(client);
      await this.audit.record({ action: 'client.erasure-started', subject, actor });
    }
    const erased = await this.eraseRows({ clientId }, onProgress, async (manager) => {
      const locked = await manager.findOne(Client, { where: { id: clientId }, lock: { mode: 'pessimistic_write' } });
      refuseEnabled(locked);
      await deleteResends(manager, { clientId });
      for (const entity of OWNED_BY_CLIENT) await manager.delete(entity, { clientId });
      await manager.delete(Client, { id: clientId });
    });
    // Last: an attempt that was under way may have recorded a failing host and figures until now.
    for (const entity of [FailingHost, ContactState, DeliveryFigure]) await manager.delete(entity, { clientId });
    await manager.delete(DeliveryPause, { subject });
    if (!client && total(erased) === 0) {
      const [started] = await this.audit.list({ action: 'client.erasure-started', subject, limit: 1 });
      if (!started) throw unknownClient(clientId);
    }
    await this.audit.record({ action: 'client.erased', subject, actor, detail: { ...erased } });
    return erased;
  }

  /**
   * A built-in member, with everything that applications made for them: orders, webhooks, tokens, consents. 409 while the
   * member is enabled, 404 if there is none with this name.
   */
  async eraseMember(name: string, { onProgress, actor }: ErasureOptions = {}): Promise<Erased> {
    const member = await this.members.get(name);
    refuseEnabled(member);
    const { id } = member;
    const subject = `member:${id}`;
    await this.audit.record({ action: 'member.erasure-started', subject, actor });
    const erased = await this.eraseRows({ ownerId: id }, onProgress, async (manager) => {
      const locked = await manager.findOne(Member, { where: { id }, lock: { mode: 'pessimistic_write' } });
      refuseEnabled(locked);
      await this.applications.withdrawAll(id, manager);
      await deleteResends(manager, { ownerId: id });
      await manager.delete(MemberSession, { memberId: id });
      await manager.delete(Member, { id });
    });
    await this.audit.record({ action: 'member.erased', subject, actor, detail: { ...erased } });
    return erased;
  }

  /** `deleteHolder` deletes the row of the client or the member itself, last and in one transaction. */
  private async eraseRows(
    holder: Holder,
    onProgress: ErasureOptions['onProgress'],
    deleteHolder: (manager: EntityManager) => Promise<void>,
  ): Promise<Erased> {
    const erased: Erased = { webhooks: 0, references: 0, orders: 0, idempotencyKeys: 0, accessTokens: 0, grants: 0 };
    const eraseAll = async (kinds: (keyof Erased)[]): Promise<void> => {
      for (const kind of kinds)
        for await (const count of this.batches(kind, holder)) {
          erased[kind] += count;
          onProgress?.(total(erased));
        }
    };
    await eraseAll(KINDS);
    await inTransaction(this.dataSource, deleteHolder);
    // A completion that had read the holder before it was deleted may have recorded a webhook since then.
    await eraseAll(['webhooks', 'orders']);
    return erased;
  }

  private async *batches(kind: keyof Erased, holder: Holder): AsyncGenerator<number> {
    const { entity, key }: Rows = ROWS[kind];
    // Orders of a client have no index by id. Those that are deleted no longer come first in the index of their list.
    const isListed = kind === 'orders' && 'clientId' in holder;
    const order: Record<string, 'ASC'> = isListed ? { listPosition: 'ASC', id: 'ASC' } : { [key]: 'ASC' };
    for (let after = ''; ;) {
      const page = (await this.dataSource.manager.find(entity, {
        select: { [key]: true },
        where: isListed ? holder : { ...holder, [key]: MoreThan(after) },
        order,
        take: BATCH,
      })) as unknown as Record<string, string>[];
      const keys = page.map((row) => row[key] ?? '');
      if (kind === 'webhooks') await this.removeJobs(keys);
      await inTransaction(this.dataSource, async (manager) => {
        await manager.delete(entity, { ...holder, [key]: In(keys) });
        for (const entity of kind === 'webhooks' ? [WebhookAttempt, ResentWebhook] : [])
          await manager.delete(entity, { webhookId: In(keys) });
      });
      yield keys.length;
      if (keys.length < BATCH) return;
      after = keys.at(-1) ?? '';
    }
  }

  /** A job that is left, because it runs or because the queue does not answer, finds no row and ends. */
  private async removeJobs(webhookIds: string[]): Promise<void> {
    await this.deliveries.remove(webhookIds).catch((error: unknown) => {
      this.logger.warn(`jobs of the deleted webhooks stay in the queue (${(error as Error).message})`);
    });
  }
}

/** Each with what it recorded of webhooks, some of which may be purged already. */
async function deleteResends(manager: EntityManager, holder: Holder): Promise<void> {
  const ids = (await manager.find(WebhookResend, { select: { id: true }, where: holder })).map(({ id }) => id);
  for (let first = 0; first < ids.length; first += MAX_IDS) {
    const some = In(ids.slice(first, first + MAX_IDS));
    await manager.delete(ResentWebhook, { resendId: some });
    await manager.delete(WebhookResend, { id: some });
  }
}

const total = (erased: Erased): number => Object.values(erased).reduce((sum, count) => sum + count, 0);

function refuseEnabled(holder: Client | Member | null): void {
  if (holder?.disabledAt !== null) return;
  const [kind, name, it] = holder instanceof Client ? ['client', holder.id, 'it'] : ['member', holder.name, 'them'];
  throw conflict(`${kind} ${name} is enabled; disable ${it} first with "usher ${kind} disable ${name}"`);
}

/** Not part of UsherModule, because it needs WebhookModule. */
@UsherNamedModule({ imports: [WebhookModule], providers: [Erasure], exports: [Erasure] })
export class ErasureModule {}
