import { Entity, Index } from 'typeorm';
import {
  CLIENT_ID_LENGTH,
  Flag,
  Int,
  LongText,
  NOTIFY_URL_LENGTH,
  NULLABLE,
  OWN_ID_LENGTH,
  OWNER_ID_LENGTH,
  PRIMARY,
  Text,
  WholeNumber,
} from '../database/columns.js';
import type { EventType } from '../values/notification.js';
import type { DiagnosisCode } from './transport/diagnosis.js';

/** Specification 3. PENDING until one attempt succeeds or the last one fails; SUCCESS and FAILED are final. */
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
  @Text(OWN_ID_LENGTH, PRIMARY)
  id: string;

  /** The order's key. */
  @Text(191)
  referenceId: string;

  @Text(64)
  eventType: EventType;

  /** Event type and reference; null after FAILED. Unique, so at most one webhook per reference is PENDING or SUCCESS. */
  @Text(255, NULLABLE)
  liveKey: string | null;

  @Text(CLIENT_ID_LENGTH)
  clientId: string;

  /** The resource owner of the order. Null: the client itself. */
  @Text(OWNER_ID_LENGTH, NULLABLE)
  ownerId: string | null;

  /** Empty after the purge. */
  @Text(NOTIFY_URL_LENGTH)
  notifyUrl: string;

  /** True if the URL was the client's registered one. A resend then uses the URL registered at that time. */
  @Flag()
  usesClientUrl: boolean;

  /** The exact text that every attempt signs and sends. */
  @LongText()
  body: string;

  @Text(10)
  status: WebhookStatus;

  /** Attempts claimed so far. */
  @Int()
  attempts: number;

  /**
   * While PENDING: the earliest time of the next attempt. While an attempt is running: the end of its lease. While a pause
   * holds it: the pause's {@link heldAt}.
   */
  @WholeNumber(NULLABLE)
  nextAttemptAt: number | null;

  @WholeNumber()
  createdAt: number;

  @WholeNumber(NULLABLE)
  finishedAt: number | null;

  @Text(OWN_ID_LENGTH, NULLABLE)
  resendOf: string | null;

  /** The id of the HTTP request that caused it, for the log, or null. */
  @Text(64, NULLABLE)
  requestId: string | null;

  /** When its body, Notify URL and attempts were deleted because of their age. The row itself is deleted later. */
  @WholeNumber(NULLABLE)
  purgedAt: number | null;
}

/**
 * What remains of a SUCCESS webhook whose row was deleted because of its age. It is kept for ever, because a delivered
 * reference is never notified again (specification 6.3). Written before that row is deleted, see retention/expired-rows.ts.
 */
@Entity('usher_delivered_reference')
@Index('usher_delivered_reference_key', ['referenceId', 'eventType'], { unique: true })
export class DeliveredReference {
  @Text(OWN_ID_LENGTH, PRIMARY)
  webhookId: string;

  @Text(191)
  referenceId: string;

  @Text(64)
  eventType: EventType;

  @Text(CLIENT_ID_LENGTH)
  clientId: string;

  @Text(OWNER_ID_LENGTH, NULLABLE)
  ownerId: string | null;

  @Int()
  attempts: number;

  @WholeNumber()
  finishedAt: number;
}

/** One POST. Written before the socket opens. Without a duration it is still running, or a crash ended it. */
@Entity('usher_webhook_attempt')
@Index('usher_webhook_attempt_started', ['startedAt'])
export class WebhookAttempt {
  @Text(OWN_ID_LENGTH, PRIMARY)
  webhookId: string;

  @Int(PRIMARY)
  number: number;

  @WholeNumber()
  startedAt: number;

  @WholeNumber(NULLABLE)
  durationMs: number | null;

  /** The last phase reached: dns, connect, tls, headers or body. */
  @Text(20, NULLABLE)
  phase: string | null;

  @Text(64, NULLABLE)
  address: string | null;

  @Int(NULLABLE)
  responseStatus: number | null;

  @Text(500, NULLABLE)
  error: string | null;

  /** Why it failed, as a code of transport/diagnosis.ts. */
  @Text(40, NULLABLE)
  diagnosis: DiagnosisCode | null;

  @LongText(NULLABLE)
  responseSnippet: string | null;

  /** X-Timestamp, X-Nonce-Str and the ids of the secrets, separated by spaces. Null until the attempt has ended. */
  @LongText(NULLABLE)
  signedWith: string | null;
}

/** What a pause applies to. A host is that of a Notify URL, with the port if it has one. */
export type PauseSubject = `client:${string}` | `host:${string}`;

/** A period in which deliveries to a client or a host wait, because an operator has paused them. */
@Entity('usher_delivery_pause')
export class DeliveryPause {
  @Text(300, PRIMARY)
  subject: PauseSubject;

  @WholeNumber(PRIMARY)
  since: number;

  /** The client can read that of its own pause. */
  @Text(500)
  reason: string;

  @WholeNumber(NULLABLE)
  resumedAt: number | null;
}

/** The due time of a held webhook is in the year 33658 or later, so no query for due webhooks reads it. */
export const HELD_FROM = 10 ** 15;

/** The due time of the webhooks that this pause holds. It identifies the pause. */
export const heldAt = ({ since }: DeliveryPause): number => HELD_FROM + since;

/** The unique key of the one webhook of a reference that is PENDING or SUCCESS. */
export const liveKeyOf = ({ eventType, referenceId }: { eventType: string; referenceId: string }): string =>
  `${eventType}:${referenceId}`;
