import { Column, Entity, PrimaryColumn } from 'typeorm';

@Entity()
export class Booking {
  /** The key of its order in Usher. */
  @PrimaryColumn()
  orderKey: string;

  @Column()
  clientId: string;

  @Column()
  seats: string;

  /** Cents. */
  @Column()
  amount: number;

  @Column()
  isPaid: boolean;
}
