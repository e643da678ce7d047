import { Logger } from '@nestjs/common';
import type { Queue } from 'bullmq';

/** Without a listener BullMQ prints a lost connection past the log. */
export function logErrors(queue: Queue): void {
  const logger = new Logger('queue');
  queue.on('error', (error) => logger.warn(`${queue.name}: ${error.message}`));
}
