import { Entity, Index } from 'typeorm';
import { LongText, NULLABLE, OWN_ID_LENGTH, PRIMARY, Text, WholeNumber } from '../database/columns.js';
import { MAX_ACTOR_ADDRESS_LENGTH, MAX_ACTOR_LENGTH } from '../values/actor.js';

/** Every action that is recorded: the subject first, past tense. */
export const AUDIT_ACTIONS = [
  'client.created',
  'client.disabled',
  'client.enabled',
  'client.notify-url-set',
  'client.contact-set',
  'client.renamed',
  'client.tokens-revoked',
  'client.erasure-started',
  'client.erased',
  'client.authentication-failed',
  'client.application-set',
  'secret.rotated',
  'secret.rotation-finished',
  'secret.replaced',
  'keys.rotated',
  'delivery.paused',
  'delivery.resumed',
  'webhook.resent',
  'resend.started',
  'resend.stopped',
  'webhook.tested',
  'alarm.acknowledged',
  'member.created',
  'member.disabled',
  'member.enabled',
  'member.password-set',
  'member.erasure-started',
  'member.erased',
  'member.signed-in',
  'member.authentication-failed',
  'consent.given',
  'consent.declined',
  'consent.withdrawn',
  'code.replayed',
  'queue.paused',
  'queue.resumed',
  'queue.changed',
  'operator.created',
  'operator.disabled',
  'operator.enabled',
  'operator.password-set',
  'operator.role-set',
  'operator.signed-in',
  'operator.authentication-failed',
  'internal.authentication-failed',
  'client.tested',
  'client.certified',
  'portal.link-created',
  'portal.link-withdrawn',
  'portal.signed-in',
  'list.exported',
] as const;
/** What happened, such as `client.disabled`. */
export type AuditAction = (typeof AUDIT_ACTIONS)[number];

/** Further facts of an event. Never a secret or a token. */
export type AuditDetail = Record<string, string | number | boolean | null>;

const MAX_SUBJECT_LENGTH = 300;

const json = {
  to: (detail: AuditDetail) => JSON.stringify(detail),
  from: (text: string) => JSON.parse(text) as AuditDetail,
};

/** One change, who made it and from where. Rows are only added, and deleted after the retention time. */
@Entity('usher_audit_event')
@Index('usher_audit_event_created', ['createdAt'])
@Index('usher_audit_event_subject', ['subject', 'id'])
export class AuditEvent {
  /** Sorts by time. */
  @Text(OWN_ID_LENGTH, PRIMARY)
  id: string;

  @WholeNumber()
  createdAt: number;

  @Text(MAX_ACTOR_LENGTH)
  actor: string;

  @Text(MAX_ACTOR_ADDRESS_LENGTH, NULLABLE)
  address: string | null;

  @Text(64)
  action: AuditAction;

  /** What was changed, such as `client:b8E7BDVoa1df1jDrbYlF`; null if it is not one thing. */
  @Text(MAX_SUBJECT_LENGTH, NULLABLE)
  subject: string | null;

  @LongText({ transformer: json })
  detail: AuditDetail;
}
