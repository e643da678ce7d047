import { BullModule, Processor, WorkerHost } from '@nestjs/bullmq';
import { Module } from '@nestjs/common';
import { ConfigService } from '@nestjs/config';
import type { Job } from 'bullmq';

/** This application's own queue. Usher has one with the same name, under another prefix. */
export const TICKETS_QUEUE = 'webhook';

/** Prints the tickets of a booking. */
@Processor(TICKETS_QUEUE)
export class TicketPrinter extends WorkerHost {
  readonly printed: string[] = [];

  async process({ data }: Job<{ reference: string }>): Promise<void> {
    this.printed.push(data.reference);
  }
}

@Module({
  imports: [
    BullModule.forRootAsync({
      inject: [ConfigService],
      useFactory: (config: ConfigService) => ({
        connection: { url: config.getOrThrow<string>('REDIS_URL') },
        prefix: config.get<string>('QUEUE_PREFIX', 'order-service'),
      }),
    }),
    BullModule.registerQueue({ name: TICKETS_QUEUE }),
  ],
  providers: [TicketPrinter],
})
export class TicketsModule {}
