import { Entity, type FindOptionsWhere, Index, IsNull, Not } from 'typeorm';
import { CLIENT_ID_LENGTH, Flag, Int, NULLABLE, PRIMARY, Text, WholeNumber } from '../../database/columns.js';
import { MAX_ACTOR_LENGTH } from '../../values/actor.js';
import type { DiagnosisCode } from '../transport/diagnosis.js';

/** A host name has at most 253 characters; a colon and a port may follow. */
export const HOST_LENGTH = 260;
const ERROR_LENGTH = 500;
/** Of what an operator writes about a failing host. */
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

  /** When it accepted a notification again, which the contact does not know yet; else null. */
  @WholeNumber(NULLABLE)
  recoveredAt: number | null;

  /** When the contact was told that it fails, or null. */
  @WholeNumber(NULLABLE)
  announcedAt: number | null;

  /** Since when there is something to tell the contact, or null. */
  @WholeNumber(NULLABLE)
  messageDueAt: number | null;

  /**
   * When operators were no longer alarmed, although it has accepted nothing: a delivery to the client's new Notify URL
   * succeeded, or somebody acknowledged it. Null: they are alarmed. The next notification that ends FAILED makes it null.
   */
  @WholeNumber(NULLABLE)
  alarmEndedAt: number | null;

  /** Who acknowledged it, or null. */
  @Text(MAX_ACTOR_LENGTH, NULLABLE)
  acknowledgedBy: string | null;

  /** The note of who acknowledged it. */
  @Text(MAX_NOTE_LENGTH, NULLABLE)
  acknowledgement: string | null;

  /** Whether all that failed there went to the registered Notify URL. Null: not known yet. */
  @Flag(NULLABLE)
  isRegisteredUrl: boolean | null;
}

/** Hosts of which operators are alarmed. */
export const ALARMING: FindOptionsWhere<FailingHost> = { recoveredAt: IsNull(), alarmEndedAt: IsNull() };
/** Hosts that fail, and that an operator acknowledged. */
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

  /** How often sending the present message has failed. */
  @Int()
  failures: number;

  /** Until then one process sends, and no other. */
  @WholeNumber()
  leasedUntil: number;
}
