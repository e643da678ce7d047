import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import {
  CLIENT_ID_LENGTH,
  longText,
  NOTIFY_URL_LENGTH,
  OWN_ID_LENGTH,
  text,
  wholeNumber,
} from '../database/columns.js';

/** Specification 3; PENDING is "delivery pending/retrying". */
export type WebhookStatus = 'PENDING' | 'SUCCESS' | 'FAILED';

/** One notification to one client: the truth of its delivery. The queue only wakes us for it. */
@Entity('usher_webhook')
@Index('usher_webhook_due', ['status', 'nextAttemptAt', 'id'])
@Index('usher_webhook_reference', ['referenceId', 'id'])
@Index('usher_webhook_client', ['clientId', 'id'])
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
  eventType: string;

  /** Event type and reference while PENDING or SUCCESS, null once FAILED: unique, so that at most one is live. */
  @Column({ ...text('live_key', 255), nullable: true })
  liveKey: string | null;

  @Column(text('client_id', CLIENT_ID_LENGTH))
  clientId: string;

  @Column(text('notify_url', NOTIFY_URL_LENGTH))
  notifyUrl: string;

  /** Whether the URL was the client's registered one: a resend then goes to the one it has registered by then. */
  @Column({ name: 'uses_client_url', type: 'boolean' })
  usesClientUrl: boolean;

  /** The exact text that is signed and sent at every attempt. */
  @Column(longText('body'))
  body: string;

  @Column(text('status', 10))
  status: WebhookStatus;

  /** Attempts claimed so far. */
  @Column({ name: 'attempts', type: 'int' })
  attempts: number;

  /** When PENDING: not before this moment. While an attempt is under way it is the end of that attempt's lease. */
  @Column({ ...wholeNumber('next_attempt_at'), nullable: true })
  nextAttemptAt: number | null;

  @Column(wholeNumber('created_at'))
  createdAt: number;

  @Column({ ...wholeNumber('finished_at'), nullable: true })
  finishedAt: number | null;

  @Column({ ...text('resend_of', OWN_ID_LENGTH), nullable: true })
  resendOf: string | null;

  /** Of the request that asked for it, for the log; null where none did. */
  @Column({ ...text('request_id', 64), nullable: true })
  requestId: string | null;

  /** When its body and its attempts were deleted, for age. */
  @Column({ ...wholeNumber('purged_at'), nullable: true })
  purgedAt: number | null;
}

/** One POST. Written before the socket opens; without a duration it is under way, or was cut off. */
@Entity('usher_webhook_attempt')
@Index('usher_webhook_attempt_started', ['startedAt'])
export class WebhookAttempt {
  @PrimaryColumn(text('webhook_id', OWN_ID_LENGTH))
  webhookId: string;

  @PrimaryColumn({ name: 'number', type: 'int' })
  number: number;

  @Column(wholeNumber('started_at'))
  startedAt: number;

  @Column({ ...wholeNumber('duration_ms'), nullable: true })
  durationMs: number | null;

  /** How far it came: dns, connect, tls, headers, body. */
  @Column({ ...text('phase', 20), nullable: true })
  phase: string | null;

  @Column({ ...text('address', 64), nullable: true })
  address: string | null;

  @Column({ name: 'response_status', type: 'int', nullable: true })
  responseStatus: number | null;

  @Column({ ...text('error', 500), nullable: true })
  error: string | null;

  @Column({ ...longText('response_snippet'), nullable: true })
  responseSnippet: string | null;
}
