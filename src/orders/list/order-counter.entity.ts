import { Column, Entity, PrimaryColumn } from 'typeorm';
import { CLIENT_ID_LENGTH, text, wholeNumber } from '../../database/columns.js';

/**
 * The last positions that a client's orders have in its lists. It is made by the first reader, and locked by each reader that
 * gives positions: one at a time, so that whoever sees a position also sees all smaller ones.
 */
@Entity('usher_order_counter')
export class OrderCounter {
  @PrimaryColumn(text('client_id', CLIENT_ID_LENGTH))
  clientId: string;

  /** The last `list_position` of an order of this client. */
  @Column(wholeNumber('list_position'))
  listPosition: number;

  /** The last `completion_position` of an order of this client. */
  @Column(wholeNumber('completion_position'))
  completionPosition: number;
}
