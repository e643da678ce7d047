import { Entity, Index } from 'typeorm';
import { LongText, OWN_ID_LENGTH, PRIMARY, separatedBy, Text, WholeNumber } from './columns.js';

/** A process that recently reported that it runs: of the server, or of an application that embeds Usher. */
@Entity('usher_process')
@Index('usher_process_seen', ['seenAt'])
export class ServiceProcess {
  @Text(OWN_ID_LENGTH, PRIMARY)
  id: string;

  /** Host name and process id, such as `web-1:4711`. */
  @Text(255)
  name: string;

  /** `all`, `api` or `worker`. */
  @Text(10)
  role: string;

  @Text(40)
  version: string;

  @WholeNumber()
  startedAt: number;

  /** Like `startedAt`, on the database's clock. */
  @WholeNumber()
  seenAt: number;

  /** How far the process's clock is ahead of the database's, in milliseconds. */
  @WholeNumber({ name: 'clock_ahead' })
  clockAheadMs: number;

  /** The ids of the master keys that it has. Null for a process of 0.2.0, which does not report them. */
  @LongText({ nullable: true, transformer: separatedBy(',') })
  keyIds: string[] | null;
}
