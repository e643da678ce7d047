import { Entity } from 'typeorm';
import { CLIENT_ID_LENGTH, PRIMARY, Text, WholeNumber } from '../../database/columns.js';

/**
 * The last positions that a client's orders have in its lists. It is made by the first reader, and locked by each reader that
 * gives positions: one at a time, so that whoever sees a position also sees all smaller ones.
 */
@Entity('usher_order_counter')
export class OrderCounter {
  @Text(CLIENT_ID_LENGTH, PRIMARY)
  clientId: string;

  /** The last `list_position` of an order of this client. */
  @WholeNumber()
  listPosition: number;

  /** The last `completion_position` of an order of this client. */
  @WholeNumber()
  completionPosition: number;
}
