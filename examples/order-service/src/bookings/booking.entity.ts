import { Column, Entity, PrimaryColumn } from 'typeorm';

/** A sale of seats: this application's own order. */
@Entity('booking')
export class Booking {
  @PrimaryColumn({ type: 'varchar', length: 40 })
  reference: string;

  /** The API client that is notified of the sale. */
  @Column({ name: 'client_id', type: 'varchar', length: 255 })
  clientId: string;

  @Column({ type: 'varchar', length: 200 })
  seats: string;

  /** Cents. */
  @Column({ type: 'int' })
  amount: number;

  @Column({ type: 'varchar', length: 10 })
  status: 'OPEN' | 'SOLD';

  /** The status of the notification; null before the sale. */
  @Column({ type: 'varchar', length: 10, nullable: true })
  notified: 'PENDING' | 'SUCCESS' | 'FAILED' | null;
}
