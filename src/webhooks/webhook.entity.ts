import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import {
  CLIENT_ID_LENGTH,
  int,
  longText,
  NOTIFY_URL_LENGTH,
  nullable,
  OWN_ID_LENGTH,
  OWNER_ID_LENGTH,
  text,
  wholeNumber,
} from '../database/columns.js';
import type { EventType } from '../values/notification.js';
import type { DiagnosisCode } from './transport/diagnosis.js';

/** Specification 3; PENDING is "delivery pending/retrying". */
/** PENDING until one attempt succeeds or the last one fails; SUCCESS and FAILED are final. */
export type WebhookStatus = 'PENDING' | 'SUCCESS' | 'FAILED';

/** One notification to one client. This row decides what is sent; a queue job only triggers the attempt. */
@Entity('usher_webhook')
@Index('usher_webhook_due', ['status', 'nextAttemptAt', 'id'])
@Index('usher_webhook_reference', ['referenceId', 'id'])
@Index('usher_webhook_client', ['clientId', 'id'])
@Index('usher_webhook_owner', ['ownerId', 'id'], { where: 'owner_id IS NOT NULL' })
@Index('usher_webhook_client_status', ['clientId', 'status', 'id'])
@Index('usher_webhook_created', ['createdAt'])
@Index('usher_webhook_retention', ['purgedAt', 'finishedAt'])
@Index('usher_webhook_live_key', ['liveKey'], { unique: true })
export class Webhook {
  @PrimaryColumn(text('id', OWN_ID_LENGTH))
  id: string;

  /** The order's key. */
  @Column(text('reference_id', 191))
  referenceId: string;

  @Column(text('event_type', 64))
  eventType: EventType;

  /** Event type and reference; null after FAILED. Unique, so at most one webhook per reference is PENDING or SUCCESS. */
  @Column(nullable(text('live_key', 255)))
  liveKey: string | null;

  @Column(text('client_id', CLIENT_ID_LENGTH))
  clientId: string;

  /** The resource owner of the order. Null: the client itself. */
  @Column(nullable(text('owner_id', OWNER_ID_LENGTH)))
  ownerId: string | null;

  /** Empty after the purge. */
  @Column(text('notify_url', NOTIFY_URL_LENGTH))
  notifyUrl: string;

  /** True if the URL was the client's registered one. A resend then uses the URL registered at that time. */
  @Column({ name: 'uses_client_url', type: 'boolean' })
  usesClientUrl: boolean;

  /** The exact text that every attempt signs and sends. */
  @Column(longText('body'))
  body: string;

  @Column(text('status', 10))
  status: WebhookStatus;

  /** Attempts claimed so far. */
  @Column(int('attempts'))
  attempts: number;

  /** While PENDING: the earliest time of the next attempt. While an attempt is running: the end of its lease. */
  @Column(nullable(wholeNumber('next_attempt_at')))
  nextAttemptAt: number | null;

  @Column(wholeNumber('created_at'))
  createdAt: number;

  @Column(nullable(wholeNumber('finished_at')))
  finishedAt: number | null;

  @Column(nullable(text('resend_of', OWN_ID_LENGTH)))
  resendOf: string | null;

  /** The id of the HTTP request that caused it, for the log, or null. */
  @Column(nullable(text('request_id', 64)))
  requestId: string | null;

  /** When its body, Notify URL and attempts were deleted because of their age. The row itself is deleted later. */
  @Column(nullable(wholeNumber('purged_at')))
  purgedAt: number | null;
}

/**
 * What remains of a SUCCESS webhook whose row was deleted because of its age. It has no end, because a delivered reference
 * is never notified again (specification 6.3). It is written before that row is deleted, see retention/expired-rows.ts.
 */
@Entity('usher_delivered_reference')
@Index('usher_delivered_reference_key', ['referenceId', 'eventType'], { unique: true })
export class DeliveredReference {
  @PrimaryColumn(text('webhook_id', OWN_ID_LENGTH))
  webhookId: string;

  @Column(text('reference_id', 191))
  referenceId: string;

  @Column(text('event_type', 64))
  eventType: EventType;

  @Column(text('client_id', CLIENT_ID_LENGTH))
  clientId: string;

  @Column(nullable(text('owner_id', OWNER_ID_LENGTH)))
  ownerId: string | null;

  @Column(int('attempts'))
  attempts: number;

  @Column(wholeNumber('finished_at'))
  finishedAt: number;
}

/** One POST. Written before the socket opens. Without a duration it is still running, or a crash ended it. */
@Entity('usher_webhook_attempt')
@Index('usher_webhook_attempt_started', ['startedAt'])
export class WebhookAttempt {
  @PrimaryColumn(text('webhook_id', OWN_ID_LENGTH))
  webhookId: string;

  @PrimaryColumn(int('number'))
  number: number;

  @Column(wholeNumber('started_at'))
  startedAt: number;

  @Column(nullable(wholeNumber('duration_ms')))
  durationMs: number | null;

  /** The last phase reached: dns, connect, tls, headers or body. */
  @Column(nullable(text('phase', 20)))
  phase: string | null;

  @Column(nullable(text('address', 64)))
  address: string | null;

  @Column(nullable(int('response_status')))
  responseStatus: number | null;

  @Column(nullable(text('error', 500)))
  error: string | null;

  /** Why it failed, as a code of transport/diagnosis.ts. */
  @Column(nullable(text('diagnosis', 40)))
  diagnosis: DiagnosisCode | null;

  @Column(nullable(longText('response_snippet')))
  responseSnippet: string | null;
}

/** The unique key of the one webhook of a reference that is PENDING or SUCCESS. */
export const liveKeyOf = ({ eventType, referenceId }: { eventType: string; referenceId: string }): string =>
  `${eventType}:${referenceId}`;
