import { type EntityManager, type FindOperator, In, IsNull, MoreThan, Not } from 'typeorm';
import { AuditEvent } from '../audit/audit-event.entity.js';
import { Authorization } from '../auth/authorize/authorization.entity.js';
import { AccessToken, Grant } from '../auth/tokens/grant.entity.js';
import { databaseNow } from '../database/sql.js';
import { MemberSession } from '../members/member.entity.js';
import { IdempotencyKey } from '../orders/idempotency-key.entity.js';
import { IDEMPOTENCY_MS } from '../orders/idempotency.js';
import { MovieOrder } from '../orders/movie-order.entity.js';
import type { ResolvedOptions } from '../usher.options.js';
import { FailingHost } from '../webhooks/contact/failing-host.entity.js';
import { DeliveredReference, Webhook, WebhookAttempt } from '../webhooks/webhook.entity.js';

/** The primary key of a row, by column, and the time that decides whether it has expired. */
export type ExpiredRow = Record<string, string> & { moment: string | number };

/** One kind of rows that expire. Its strings are written into SQL, so they must never contain user input. */
export interface ExpiringRows {
  kind:
    | 'accessTokens'
    | 'grants'
    | 'authorizations'
    | 'memberSessions'
    | 'idempotencyKeys'
    | 'orders'
    | 'webhooks'
    | 'webhookRows'
    | 'failingHosts'
    | 'auditEvents';
  entity: new () => object;
  key: string[];
  /** The index with the columns of `condition` and then `moment`. */
  index: string;
  condition?: string;
  moment: string;
  /** Rows whose moment is not after this time have expired. */
  until(now: number, options: ResolvedOptions): number;
  erase(manager: EntityManager, rows: ExpiredRow[]): Promise<unknown>;
}

const tokensUntil = (now: number): number => now;
const retainedUntil = (now: number, { retentionMs }: ResolvedOptions): number => now - retentionMs;
/** In key order, so that two concurrent purges do not deadlock. */
const column = (rows: ExpiredRow[], name: string) => In(rows.map((row) => row[name]).sort());

/** A grant expires with its refresh token. Its access tokens remain valid until they expire themselves. */
const TOKENS: ExpiringRows[] = [
  {
    kind: 'accessTokens',
    entity: AccessToken,
    key: ['digest'],
    index: 'usher_access_token_expiry',
    moment: 'expires_at',
    until: tokensUntil,
    erase: (manager, rows) => manager.delete(AccessToken, { digest: column(rows, 'digest') }),
  },
  {
    kind: 'grants',
    entity: Grant,
    key: ['id'],
    index: 'usher_grant_expiry',
    moment: 'expires_at',
    until: tokensUntil,
    erase: async (manager, rows) => {
      const ids = column(rows, 'id');
      await keepFirstTokens(manager, ids);
      await manager.delete(Grant, { id: ids });
    },
  },
];

/** Where access tokens live longer than refresh tokens, the first token of a grant outlives its row. */
async function keepFirstTokens(manager: EntityManager, ids: FindOperator<string>): Promise<void> {
  const living = MoreThan(await databaseNow(manager));
  const grants = await manager.findBy(Grant, { id: ids, accessDigest: Not(IsNull()), accessExpiresAt: living });
  const tokens = grants.map(({ id, refreshDigest: _, accessDigest, accessExpiresAt, ...grant }) => ({
    ...grant,
    digest: accessDigest ?? '',
    grantId: id,
    expiresAt: accessExpiresAt,
  }));
  if (tokens.length > 0) await manager.insert(AccessToken, tokens);
}

/** A used code is known for a day longer, so that its replay still revokes what it gave. */
const REPLAY_MS = 86_400_000;

const SIGNED_IN: ExpiringRows[] = [
  {
    kind: 'authorizations',
    entity: Authorization,
    key: ['form_digest'],
    index: 'usher_authorization_expiry',
    moment: 'expires_at',
    until: (now) => now - REPLAY_MS,
    erase: (manager, rows) => manager.delete(Authorization, { formDigest: column(rows, 'form_digest') }),
  },
  {
    kind: 'memberSessions',
    entity: MemberSession,
    key: ['digest'],
    index: 'usher_member_session_expiry',
    moment: 'expires_at',
    until: (now) => now,
    erase: (manager, rows) => manager.delete(MemberSession, { digest: column(rows, 'digest') }),
  },
];

const ORDERS: ExpiringRows[] = [
  {
    kind: 'idempotencyKeys',
    entity: IdempotencyKey,
    key: ['client_id', 'owner_id', 'idempotency_key'],
    index: 'usher_idempotency_key_age',
    moment: 'created_at',
    until: (now) => now - IDEMPOTENCY_MS,
    erase: (manager, rows) =>
      manager.delete(
        IdempotencyKey,
        rows.map((row) => ({ clientId: row.client_id, ownerId: row.owner_id, key: row.idempotency_key })),
      ),
  },
  {
    kind: 'orders',
    entity: MovieOrder,
    key: ['id'],
    condition: "status = 'COMPLETED'",
    index: 'usher_movie_order_retention',
    moment: 'last_updated_at',
    until: retainedUntil,
    erase: (manager, rows) => manager.delete(MovieOrder, { id: column(rows, 'id') }),
  },
];

/**
 * The content of an ended webhook. What was delivered leaves a DeliveredReference, which prevents a second notification for
 * ever. The row goes later (below): a transaction that did not see the reference yet finds the row's live key.
 */
const WEBHOOKS: ExpiringRows = {
  kind: 'webhooks',
  entity: Webhook,
  key: ['id'],
  condition: 'purged_at IS NULL',
  index: 'usher_webhook_retention',
  moment: 'finished_at',
  until: retainedUntil,
  erase: async (manager, rows) => {
    const ids = column(rows, 'id');
    await keepReferences(manager, await manager.findBy(Webhook, { id: ids, status: 'SUCCESS' }));
    // The time of the batch, so that the deletion of the rows can go on where its last batch ended.
    await manager.update(Webhook, { id: ids }, { body: '', notifyUrl: '', purgedAt: await databaseNow(manager) });
    await manager.delete(WebhookAttempt, { webhookId: ids });
  },
};

async function keepReferences(manager: EntityManager, delivered: Webhook[]): Promise<void> {
  if (delivered.length === 0) return;
  const rows = delivered.map(({ id, referenceId, eventType, clientId, ownerId, attempts, finishedAt, createdAt }) => ({
    webhookId: id,
    referenceId,
    eventType,
    clientId,
    ownerId,
    attempts,
    finishedAt: finishedAt ?? createdAt,
  }));
  await manager.insert(DeliveredReference, rows);
}

/** Far longer than any transaction that records a webhook. */
const ROW_MARGIN_MS = 1_800_000;

const WEBHOOK_ROWS: ExpiringRows = {
  kind: 'webhookRows',
  entity: Webhook,
  key: ['id'],
  index: 'usher_webhook_retention',
  moment: 'purged_at',
  until: (now) => now - ROW_MARGIN_MS,
  erase: (manager, rows) => manager.delete(Webhook, { id: column(rows, 'id') }),
};

/** Nothing was sent to such a host for so long that its FAILED notifications are deleted too. */
const FAILING_HOSTS: ExpiringRows = {
  kind: 'failingHosts',
  entity: FailingHost,
  key: ['client_id', 'host'],
  index: 'usher_failing_host_age',
  moment: 'last_failed_at',
  until: retainedUntil,
  erase: (manager, rows) =>
    manager.delete(
      FailingHost,
      rows.map((row) => ({ clientId: row.client_id, host: row.host })),
    ),
};

const AUDIT_EVENTS: ExpiringRows = {
  kind: 'auditEvents',
  entity: AuditEvent,
  key: ['id'],
  index: 'usher_audit_event_created',
  moment: 'created_at',
  until: (now, { auditRetentionMs }) => now - auditRetentionMs,
  erase: (manager, rows) => manager.delete(AuditEvent, { id: column(rows, 'id') }),
};

export const EXPIRING_ROWS: ExpiringRows[] = [
  ...TOKENS,
  ...SIGNED_IN,
  ...ORDERS,
  WEBHOOKS,
  WEBHOOK_ROWS,
  FAILING_HOSTS,
  AUDIT_EVENTS,
];
