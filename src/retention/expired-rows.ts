import { type EntityManager, In } from 'typeorm';
import { AuditEvent } from '../audit/audit-event.entity.js';
import { Authorization } from '../clients/authorization.entity.js';
import { AccessToken, Grant } from '../auth/tokens/grant.entity.js';
import { ContactNotice, PortalLink, PortalSession } from '../clients/portal.entity.js';
import { dialectOf, tableOf } from '../database/data-source.js';
import { databaseNow } from '../database/sql.js';
import { MemberSession } from '../members/member.entity.js';
import { IdempotencyKey, MovieOrder, ORDER_STATUSES, orderStatuses } from '../orders/movie-order.entity.js';
import { IDEMPOTENCY_MS } from '../orders/idempotency.js';
import { OperatorSession, UsedForm } from '../operators/operator.entity.js';
import type { ResolvedOptions } from '../usher.options.js';
import { FailingHost } from '../webhooks/contact/failing-host.entity.js';
import { DeliveryFigure } from '../webhooks/figures/delivery-figure.entity.js';
import { figuresKeptMs } from '../webhooks/figures/delivery-figures.js';
import { ResentWebhook, WebhookResend } from '../webhooks/undelivered/webhook-resend.entity.js';
import { DeliveredReference, DeliveryPause, HELD_FROM, Webhook, WebhookAttempt } from '../webhooks/webhook.entity.js';

export type ExpiredKey = Record<string, string | number>;

/** One kind of rows that expire. Its strings are written into SQL, so they must never contain user input. */
export interface ExpiringRows {
  entity: new () => object;
  /** The index with the columns of `condition` and then `moment`; of a small table the primary key. */
  index: string;
  condition?: string | ((manager: EntityManager) => string);
  moment: string;
  /** How long rows are kept after their moment, in milliseconds; default 0. */
  keptMs?(options: ResolvedOptions): number;
  /** Default: {@link deleteRows}. */
  erase?(manager: EntityManager, keys: ExpiredKey[]): Promise<void>;
}

/** In key order, so that two concurrent purges do not deadlock. */
const idsOf = (keys: ExpiredKey[], name = 'id') => In(keys.map((key) => key[name]).sort());

export async function deleteRows(
  manager: EntityManager,
  entity: ExpiringRows['entity'],
  keys: ExpiredKey[],
): Promise<void> {
  const [name, ...others] = Object.keys(keys[0] ?? {});
  await manager.delete(entity, others.length > 0 ? keys : { [name ?? '']: idsOf(keys, name) });
}

const retention = ({ retentionMs }: ResolvedOptions): number => retentionMs;

/** A used code is kept for a day longer, so that its replay still revokes the tokens that it gave. */
const REPLAY_MS = 86_400_000;
/** Far longer than any transaction that records a webhook. */
const ROW_MARGIN_MS = 1_800_000;

/** A message that could not be sent for so long is outdated. */
const NOTICE_MS = 86_400_000;

/** Far longer than any transaction that has read a pause. The audit log keeps who paused and resumed. */
const ENDED_PAUSE_MS = 86_400_000;

const expiring = orderStatuses.filter((status) => ORDER_STATUSES[status].expires);

/** In the order in which they are deleted. */
export const EXPIRING_ROWS = {
  accessTokens: { entity: AccessToken, index: 'usher_access_token_expiry', moment: 'expires_at' },
  /** With its refresh token, or with the last of its access tokens if that expires later: a revocation finds them by the grant. */
  grants: {
    entity: Grant,
    // Neither an anti-join nor MAX, for which Postgres may read all access tokens.
    condition: (manager) => {
      const { now } = dialectOf(manager);
      return `access_expires_at <= ${now} AND (SELECT COUNT(*) FROM ${tableOf(manager, AccessToken)} a
        WHERE a.grant_id = id AND a.expires_at > ${now}) = 0`;
    },
    index: 'usher_grant_expiry',
    moment: 'expires_at',
    // So that those whose access tokens live are not read in every run.
    keptMs: ({ accessTokenSeconds, refreshTokenSeconds }) =>
      Math.max(0, accessTokenSeconds - refreshTokenSeconds) * 1_000,
  },
  authorizations: {
    entity: Authorization,
    index: 'usher_authorization_expiry',
    moment: 'expires_at',
    keptMs: () => REPLAY_MS,
  },
  memberSessions: { entity: MemberSession, index: 'usher_member_session_expiry', moment: 'expires_at' },
  usedForms: { entity: UsedForm, index: 'usher_used_form_expiry', moment: 'expires_at' },
  operatorSessions: {
    entity: OperatorSession,
    index: 'usher_operator_session_expiry',
    moment: 'expires_at',
  },
  portalSessions: { entity: PortalSession, index: 'usher_portal_session_expires_at', moment: 'expires_at' },
  /** They show who was signed in. */
  portalLinks: { entity: PortalLink, index: 'usher_portal_link_expires_at', moment: 'expires_at', keptMs: retention },
  contactNotices: {
    entity: ContactNotice,
    index: 'usher_contact_notice_created_at',
    moment: 'created_at',
    keptMs: () => NOTICE_MS,
  },
  idempotencyKeys: {
    entity: IdempotencyKey,
    index: 'usher_idempotency_key_age',
    moment: 'created_at',
    keptMs: () => IDEMPOTENCY_MS,
  },
  orders: {
    entity: MovieOrder,
    condition: `status IN (${expiring.map((status) => `'${status}'`).join(', ')})`,
    index: 'usher_movie_order_retention',
    moment: 'last_updated_at',
    keptMs: retention,
  },
  /**
   * The content of an ended webhook. A delivered one leaves a DeliveredReference, which prevents a second notification for
   * ever. The row is deleted later (below): a transaction that does not see the reference yet finds the row's live key.
   */
  webhooks: {
    entity: Webhook,
    condition: 'purged_at IS NULL',
    index: 'usher_webhook_retention',
    moment: 'finished_at',
    keptMs: retention,
    erase: async (manager, keys) => {
      const ids = idsOf(keys);
      await keepReferences(manager, await manager.findBy(Webhook, { id: ids, status: 'SUCCESS' }));
      // The time of the batch, so that the deletion of the rows can go on where its last batch ended.
      await manager.update(Webhook, { id: ids }, { body: '', notifyUrl: '', purgedAt: await databaseNow(manager) });
      await manager.delete(WebhookAttempt, { webhookId: ids });
    },
  },
  webhookRows: {
    entity: Webhook,
    index: 'usher_webhook_retention',
    moment: 'purged_at',
    keptMs: () => ROW_MARGIN_MS,
  },
  resends: {
    entity: WebhookResend,
    index: 'usher_webhook_resend_finished',
    moment: 'finished_at',
    keptMs: retention,
    erase: async (manager, keys) => {
      await manager.delete(ResentWebhook, { resendId: idsOf(keys) });
      await deleteRows(manager, WebhookResend, keys);
    },
  },
  /** Nothing was sent to such a host for so long that its FAILED notifications are deleted too. */
  failingHosts: {
    entity: FailingHost,
    index: 'usher_failing_host_age',
    moment: 'last_failed_at',
    keptMs: retention,
  },
  /** Pauses that have ended and hold no webhook any more. They are few, so their condition needs no index of its own. */
  deliveryPauses: {
    entity: DeliveryPause,
    condition: (manager) => `NOT EXISTS (SELECT 1 FROM ${tableOf(manager, Webhook)} w
      WHERE w.status = 'PENDING' AND w.next_attempt_at = ${HELD_FROM} + since)`,
    index: 'PRIMARY',
    moment: 'resumed_at',
    keptMs: () => ENDED_PAUSE_MS,
  },
  deliveryFigures: {
    entity: DeliveryFigure,
    index: 'usher_delivery_figure_period',
    moment: 'starts_at',
    keptMs: figuresKeptMs,
  },
  auditEvents: {
    entity: AuditEvent,
    index: 'usher_audit_event_created',
    moment: 'created_at',
    keptMs: ({ auditRetentionMs }) => auditRetentionMs,
  },
} satisfies Record<string, ExpiringRows>;

async function keepReferences(manager: EntityManager, delivered: Webhook[]): Promise<void> {
  if (delivered.length === 0) return;
  const rows = delivered.map(({ id, finishedAt, createdAt, ...webhook }) => ({
    ...webhook,
    webhookId: id,
    finishedAt: finishedAt ?? createdAt,
  }));
  await manager.insert(DeliveredReference, rows);
}
