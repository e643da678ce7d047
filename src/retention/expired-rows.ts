import { type EntityManager, type FindOperator, IsNull, MoreThan, Not } from 'typeorm';
import { AuditEvent } from '../audit/audit-event.entity.js';
import { Authorization } from '../auth/authorize/authorization.entity.js';
import { AccessToken, Grant } from '../auth/tokens/grant.entity.js';
import { databaseNow } from '../database/sql.js';
import { MemberSession } from '../members/member.entity.js';
import { IdempotencyKey } from '../orders/idempotency-key.entity.js';
import { IDEMPOTENCY_MS } from '../orders/idempotency.js';
import { MovieOrder, ORDER_STATUSES, orderStatuses } from '../orders/movie-order.entity.js';
import { OperatorSession } from '../operators/operator.entity.js';
import { EXPIRED_WEBHOOKS } from './expired-webhooks.js';
import { column, type ExpiringRows, retainedUntil } from './expiring-rows.js';

const tokensUntil = (now: number): number => now;

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
  {
    kind: 'operatorSessions',
    entity: OperatorSession,
    key: ['digest'],
    index: 'usher_operator_session_expiry',
    moment: 'expires_at',
    until: (now) => now,
    erase: (manager, rows) => manager.delete(OperatorSession, { digest: column(rows, 'digest') }),
  },
];

const expiring = orderStatuses.filter((status) => ORDER_STATUSES[status].expires);

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
    condition: `status IN (${expiring.map((status) => `'${status}'`).join(', ')})`,
    index: 'usher_movie_order_retention',
    moment: 'last_updated_at',
    until: retainedUntil,
    erase: (manager, rows) => manager.delete(MovieOrder, { id: column(rows, 'id') }),
  },
];

const AUDIT_EVENTS: ExpiringRows = {
  kind: 'auditEvents',
  entity: AuditEvent,
  key: ['id'],
  index: 'usher_audit_event_created',
  moment: 'created_at',
  until: (now, { auditRetentionMs }) => now - auditRetentionMs,
  erase: (manager, rows) => manager.delete(AuditEvent, { id: column(rows, 'id') }),
};

export const EXPIRING_ROWS: ExpiringRows[] = [...TOKENS, ...SIGNED_IN, ...ORDERS, ...EXPIRED_WEBHOOKS, AUDIT_EVENTS];
