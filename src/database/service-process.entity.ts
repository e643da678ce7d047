import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { OWN_ID_LENGTH, text, wholeNumber } from './columns.js';

/** A process of the server that said a short time ago that it runs, for the operator's page on health. */
@Entity('usher_process')
@Index('usher_process_seen', ['seenAt'])
export class ServiceProcess {
  @PrimaryColumn(text('id', OWN_ID_LENGTH))
  id: string;

  /** Host name and process id, such as `web-1:4711`. */
  @Column(text('name', 255))
  name: string;

  /** `all`, `api` or `worker`. */
  @Column(text('role', 10))
  role: string;

  @Column(text('version', 40))
  version: string;

  @Column(wholeNumber('started_at'))
  startedAt: number;

  /** Both on the database's clock. */
  @Column(wholeNumber('seen_at'))
  seenAt: number;

  /** How far the process's clock is ahead of the database's, in milliseconds. */
  @Column(wholeNumber('clock_ahead'))
  clockAheadMs: number;
}
