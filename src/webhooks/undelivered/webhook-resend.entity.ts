import { Entity, Index } from 'typeorm';
import {
  CLIENT_ID_LENGTH,
  Flag,
  Int,
  LongText,
  NULLABLE,
  OWN_ID_LENGTH,
  OWNER_ID_LENGTH,
  PRIMARY,
  separatedBy,
  Text,
  WholeNumber,
} from '../../database/columns.js';
import { MAX_ACTOR_ADDRESS_LENGTH, MAX_ACTOR_LENGTH } from '../../values/actor.js';
import { HOST_LENGTH } from '../../values/urls/notify-url.js';
import type { DiagnosisCode } from '../transport/diagnosis.js';
import type { WebhookStatus } from '../webhook.entity.js';

/** A request to resend many FAILED webhooks, and how far it is. Any worker goes on with it (resend-work.ts). */
@Entity('usher_webhook_resend')
@Index('usher_webhook_resend_finished', ['finishedAt', 'id'])
export class WebhookResend {
  @Text(OWN_ID_LENGTH, PRIMARY)
  id: string;

  /** Only webhooks of this client. Null: of every client. */
  @Text(CLIENT_ID_LENGTH, NULLABLE)
  clientId: string | null;

  /** Only webhooks of this resource owner. Null: of every owner. */
  @Text(OWNER_ID_LENGTH, NULLABLE)
  ownerId: string | null;

  @Text(191, NULLABLE)
  referenceId: string | null;

  @WholeNumber({ ...NULLABLE, name: 'failed_since' })
  since: number | null;

  /** Only webhooks that failed before this time. Those that fail after the request are never resent by it. */
  @WholeNumber({ ...NULLABLE, name: 'failed_until' })
  until: number | null;

  /** Only webhooks to this host, as `WebhookCriteria` has it. */
  @Text(HOST_LENGTH, NULLABLE)
  host: string | null;

  @Text(40, NULLABLE)
  reason: DiagnosisCode | null;

  @WholeNumber(NULLABLE)
  madeSince: number | null;

  @WholeNumber(NULLABLE)
  madeUntil: number | null;

  /** Whether only webhooks that had, or had not, been sent again before the request. */
  @Flag(NULLABLE)
  isSentAgain: boolean | null;

  /** Only these webhooks, which an operator has selected. */
  @LongText({ ...NULLABLE, transformer: separatedBy(' ') })
  webhookIds: string[] | null;

  /** Whether it waits while the client has too many pending webhooks. */
  @Flag()
  isLimited: boolean;

  /** Whether somebody ended it before it had looked at all webhooks. */
  @Flag()
  isStopped: boolean;

  /** Webhooks with this id or a greater one are done, because the newest come first. Null: none is done. */
  @Text(OWN_ID_LENGTH, NULLABLE)
  doneFromId: string | null;

  /** The webhooks that matched when it was requested. Null: an operator's request with too many to count. */
  @Int(NULLABLE)
  selected: number | null;

  @Int()
  resent: number;

  @Int()
  refused: number;

  @Text(MAX_ACTOR_LENGTH)
  actor: string;

  @Text(MAX_ACTOR_ADDRESS_LENGTH, NULLABLE)
  actorAddress: string | null;

  @Text(64, NULLABLE)
  requestId: string | null;

  @WholeNumber()
  createdAt: number;

  @WholeNumber(NULLABLE)
  finishedAt: number | null;
}

/** What a request has done with one webhook. Processes before 0.3 write none. */
@Entity('usher_resent_webhook')
@Index('usher_resent_webhook_webhook', ['webhookId'])
export class ResentWebhook {
  @Text(OWN_ID_LENGTH, PRIMARY)
  resendId: string;

  /** The new webhook, or the FAILED one that was refused. */
  @Text(OWN_ID_LENGTH, PRIMARY)
  webhookId: string;

  /** Why it was refused: the status of another webhook of its order, or no Notify URL. Null: it was sent again. */
  @Text(10, NULLABLE)
  refusal: WebhookStatus | 'NO_URL' | null;
}
