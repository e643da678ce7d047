import { Entity, Index } from 'typeorm';
import { OWN_ID_LENGTH, PRIMARY, Text, WholeNumber } from './columns.js';

/** A process of the server that said a short time ago that it runs, for the operator's page on health. */
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

  /** Both on the database's clock. */
  @WholeNumber()
  seenAt: number;

  /** How far the process's clock is ahead of the database's, in milliseconds. */
  @WholeNumber({ name: 'clock_ahead' })
  clockAheadMs: number;
}
