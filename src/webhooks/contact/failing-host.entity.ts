import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { CLIENT_ID_LENGTH, int, nullable, text, wholeNumber } from '../../database/columns.js';
import type { DiagnosisCode } from '../transport/diagnosis.js';

/** A host name has at most 253 characters; a colon and a port may follow. */
export const HOST_LENGTH = 260;
const ERROR_LENGTH = 500;

/** A host of a client's Notify URLs whose last attempts failed. A host that accepts notifications has no row. */
@Entity('usher_failing_host')
@Index('usher_failing_host_due', ['messageDueAt'])
@Index('usher_failing_host_age', ['lastFailedAt'])
export class FailingHost {
  @PrimaryColumn(text('client_id', CLIENT_ID_LENGTH))
  clientId: string;

  /** With the port, if the Notify URL has one. */
  @PrimaryColumn(text('host', HOST_LENGTH))
  host: string;

  /** The end of the first of the failed attempts. */
  @Column(wholeNumber('failing_since'))
  failingSince: number;

  /** The end of a recent failed attempt. It is not written more often than once a minute. */
  @Column(wholeNumber('last_failed_at'))
  lastFailedAt: number;

  /** Why that attempt failed, without private addresses. */
  @Column(text('last_error', ERROR_LENGTH))
  lastError: string;

  /** Why, as a code of transport/diagnosis.ts. */
  @Column(nullable(text('last_diagnosis', 40)))
  lastDiagnosis: DiagnosisCode | null;

  /** When a notification to it first ended FAILED, or null. */
  @Column(nullable(wholeNumber('first_ended_failed_at')))
  firstEndedFailedAt: number | null;

  /** When it accepted a notification again, which the contact does not know yet; else null. */
  @Column(nullable(wholeNumber('recovered_at')))
  recoveredAt: number | null;

  /** When the contact was told that it fails, or null. */
  @Column(nullable(wholeNumber('announced_at')))
  announcedAt: number | null;

  /** Since when there is something to tell the contact, or null. */
  @Column(nullable(wholeNumber('message_due_at')))
  messageDueAt: number | null;
}

/** When the contact of a client may get the next message, and whether a process is sending one now. */
@Entity('usher_contact_state')
export class ContactState {
  @PrimaryColumn(text('client_id', CLIENT_ID_LENGTH))
  clientId: string;

  /** Messages that were sent. The next one has this number in its id. */
  @Column(int('sent'))
  sent: number;

  /** No message is sent before this time: an hour after the last one, or the end of the pause after a failure to send. */
  @Column(wholeNumber('not_before'))
  notBefore: number;

  /** How often sending the present message has failed. */
  @Column(int('failures'))
  failures: number;

  /** Until then one process sends, and no other. */
  @Column(wholeNumber('leased_until'))
  leasedUntil: number;
}
