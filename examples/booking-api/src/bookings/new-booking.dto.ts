import { IsInt, IsPositive, IsString } from 'class-validator';

export class NewBooking {
  @IsString()
  seats: string;

  /** Cents. */
  @IsInt()
  @IsPositive()
  amount: number;
}
