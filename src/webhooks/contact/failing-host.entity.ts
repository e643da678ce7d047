import { Entity, type FindOptionsWhere, Index, IsNull, Not } from 'typeorm';
import { CLIENT_ID_LENGTH, Flag, Int, NULLABLE, PRIMARY, Text, WholeNumber } from '../../database/columns.js';
import { MAX_ACTOR_LENGTH } from '../../values/actor.js';
import { HOST_LENGTH } from '../../values/urls/notify-url.js';
import type { DiagnosisCode } from '../transport/diagnosis.js';

const ERROR_LENGTH = 500;
export const MAX_NOTE_LENGTH = 500;

/** A host of a client's Notify URLs whose last attempts failed. A host that accepts notifications has no row. */
@Entity('usher_failing_host')
@Index('usher_failing_host_due', ['messageDueAt'])
@Index('usher_failing_host_age', ['lastFailedAt'])
export class FailingHost {
  @Text(CLIENT_ID_LENGTH, PRIMARY)
  clientId: string;

  /** With the port, if the Notify URL has one. */
  @Text(HOST_LENGTH, PRIMARY)
  host: string;

  /** The end of the first of the failed attempts. */
  @WholeNumber()
  failingSince: number;

  /** The end of a recent failed attempt. It is not written more often than once a minute. */
  @WholeNumber()
  lastFailedAt: number;

  /** Why that attempt failed, without private addresses. */
  @Text(ERROR_LENGTH)
  lastError: string;

  /** Why, as a code of transport/diagnosis.ts. */
  @Text(40, NULLABLE)
  lastDiagnosis: DiagnosisCode | null;

  /** When a notification to it first ended FAILED, or null. */
  @WholeNumber(NULLABLE)
  firstEndedFailedAt: number | null;

  /** When it accepted a notification again, if the contact does not know that yet; else null. */
  @WholeNumber(NULLABLE)
  recoveredAt: number | null;

  /** When the contact was told that it fails, or null. */
  @WholeNumber(NULLABLE)
  announcedAt: number | null;

  /** Since when there is something to tell the contact, or null. */
  @WholeNumber(NULLABLE)
  messageDueAt: number | null;

  /**
   * When the alarm ended although the host accepted nothing: a delivery to the client's new Notify URL succeeded, or
   * somebody acknowledged the alarm. The next notification that ends FAILED sets it to null, which is an alarm.
   */
  @WholeNumber(NULLABLE)
  alarmEndedAt: number | null;

  /** Who acknowledged it, or null. */
  @Text(MAX_ACTOR_LENGTH, NULLABLE)
  acknowledgedBy: string | null;

  @Text(MAX_NOTE_LENGTH, NULLABLE)
  acknowledgement: string | null;

  /** Whether all failed attempts there went to the registered Notify URL. Null: not known yet. */
  @Flag(NULLABLE)
  isRegisteredUrl: boolean | null;
}

export const ALARMING: FindOptionsWhere<FailingHost> = { recoveredAt: IsNull(), alarmEndedAt: IsNull() };
export const ACKNOWLEDGED: FindOptionsWhere<FailingHost> = { recoveredAt: IsNull(), acknowledgedBy: Not(IsNull()) };

/** When the contact of a client may get the next message, and whether a process is sending one now. */
@Entity('usher_contact_state')
export class ContactState {
  @Text(CLIENT_ID_LENGTH, PRIMARY)
  clientId: string;

  /** Messages that were sent. The next one has this number in its id. */
  @Int()
  sent: number;

  /** No message is sent before this time: an hour after the last one, or the end of the pause after a failure to send. */
  @WholeNumber()
  notBefore: number;

  @Int()
  failures: number;

  /** Until this time only one process sends. */
  @WholeNumber()
  leasedUntil: number;
}
