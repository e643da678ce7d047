import { type EntityManager, In } from 'typeorm';
import { AccessToken, Grant } from '../auth/tokens/grant.entity.js';
import { IdempotencyKey } from '../orders/idempotency-key.entity.js';
import { IDEMPOTENCY_MS } from '../orders/idempotency.js';
import { MovieOrder } from '../orders/movie-order.entity.js';
import type { ResolvedOptions } from '../usher.options.js';
import { Webhook, WebhookAttempt } from '../webhooks/webhook.entity.js';

/** The primary key of a row, by column, and the time that decides whether it has expired. */
export type ExpiredRow = Record<string, string> & { moment: string | number };

/** One kind of rows that expire. Its strings are written into SQL, so they must never contain user input. */
export interface ExpiringRows {
  kind: 'accessTokens' | 'grants' | 'idempotencyKeys' | 'orders' | 'webhooks';
  entity: new () => object;
  key: string[];
  /** The index with the columns of `condition` and then `moment`. */
  index: string;
  condition?: string;
  moment: string;
  /** Rows whose moment is not after this time have expired. */
  until(now: number, options: ResolvedOptions): number;
  erase(manager: EntityManager, rows: ExpiredRow[], now: number): Promise<unknown>;
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
    erase: (manager, rows) => manager.delete(Grant, { id: column(rows, 'id') }),
  },
];

const ORDERS: ExpiringRows[] = [
  {
    kind: 'idempotencyKeys',
    entity: IdempotencyKey,
    key: ['client_id', 'idempotency_key'],
    index: 'usher_idempotency_key_age',
    moment: 'created_at',
    until: (now) => now - IDEMPOTENCY_MS,
    erase: (manager, rows) =>
      manager.delete(
        IdempotencyKey,
        rows.map((row) => ({ clientId: row.client_id, key: row.idempotency_key })),
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

/** The row itself is kept: its live key prevents a second notification of a reference that had a SUCCESS. */
const WEBHOOKS: ExpiringRows = {
  kind: 'webhooks',
  entity: Webhook,
  key: ['id'],
  condition: 'purged_at IS NULL',
  index: 'usher_webhook_retention',
  moment: 'finished_at',
  until: retainedUntil,
  erase: async (manager, rows, now) => {
    await manager.update(Webhook, { id: column(rows, 'id') }, { body: '', purgedAt: now });
    await manager.delete(WebhookAttempt, { webhookId: column(rows, 'id') });
  },
};

export const EXPIRING_ROWS: ExpiringRows[] = [...TOKENS, ...ORDERS, WEBHOOKS];
