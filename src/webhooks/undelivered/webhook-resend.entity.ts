import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import {
  CLIENT_ID_LENGTH,
  int,
  longText,
  nullable,
  OWN_ID_LENGTH,
  OWNER_ID_LENGTH,
  text,
  wholeNumber,
} from '../../database/columns.js';
import { MAX_ACTOR_ADDRESS_LENGTH, MAX_ACTOR_LENGTH } from '../../values/actor.js';
import { HOST_LENGTH } from '../contact/failing-host.entity.js';
import type { DiagnosisCode } from '../transport/diagnosis.js';

const spaceSeparated = {
  to: (ids: string[] | null) => ids?.join(' ') ?? null,
  from: (ids: string | null) => ids?.split(' ') ?? null,
};

/** A request to resend many FAILED webhooks, and how far it is. Any worker goes on with it (resend-work.ts). */
@Entity('usher_webhook_resend')
@Index('usher_webhook_resend_finished', ['finishedAt', 'id'])
export class WebhookResend {
  @PrimaryColumn(text('id', OWN_ID_LENGTH))
  id: string;

  /** Only webhooks of this client. Null: of every client. */
  @Column(nullable(text('client_id', CLIENT_ID_LENGTH)))
  clientId: string | null;

  /** Only webhooks of this resource owner. Null: of every owner. */
  @Column(nullable(text('owner_id', OWNER_ID_LENGTH)))
  ownerId: string | null;

  /** Only the webhooks of this reference. */
  @Column(nullable(text('reference_id', 191)))
  referenceId: string | null;

  /** Only webhooks that failed at this time or later. */
  @Column(nullable(wholeNumber('failed_since')))
  since: number | null;

  /** Only webhooks that failed before this time. Those that fail after the request are never resent by it. */
  @Column(nullable(wholeNumber('failed_until')))
  until: number | null;

  /** Only webhooks to this host, as `WebhookCriteria` has it. */
  @Column(nullable(text('host', HOST_LENGTH)))
  host: string | null;

  /** Only webhooks whose last attempt failed for this reason. */
  @Column(nullable(text('reason', 40)))
  reason: DiagnosisCode | null;

  /** Only webhooks that were made at this time or later. */
  @Column(nullable(wholeNumber('made_since')))
  madeSince: number | null;

  /** Only webhooks that were made before this time. */
  @Column(nullable(wholeNumber('made_until')))
  madeUntil: number | null;

  /** Only these webhooks, which an operator has selected. */
  @Column({ ...nullable(longText('webhook_ids')), transformer: spaceSeparated })
  webhookIds: string[] | null;

  /** Whether it waits while the client has too many pending webhooks. */
  @Column({ name: 'is_limited', type: 'boolean' })
  isLimited: boolean;

  /** Whether somebody ended it before it had looked at all webhooks. */
  @Column({ name: 'is_stopped', type: 'boolean' })
  isStopped: boolean;

  /** Webhooks with this id or a greater one are done, because the newest come first. Null: none is done. */
  @Column(nullable(text('done_from_id', OWN_ID_LENGTH)))
  doneFromId: string | null;

  /** The webhooks that fitted when it was requested. Null: an operator's request with too many to count. */
  @Column(nullable(int('selected')))
  selected: number | null;

  @Column(int('resent'))
  resent: number;

  @Column(int('refused'))
  refused: number;

  @Column(text('actor', MAX_ACTOR_LENGTH))
  actor: string;

  @Column(nullable(text('actor_address', MAX_ACTOR_ADDRESS_LENGTH)))
  actorAddress: string | null;

  @Column(nullable(text('request_id', 64)))
  requestId: string | null;

  @Column(wholeNumber('created_at'))
  createdAt: number;

  /** Null while it is RUNNING. */
  @Column(nullable(wholeNumber('finished_at')))
  finishedAt: number | null;
}
