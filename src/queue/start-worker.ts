import type { Logger } from '@nestjs/common';
import type { Worker } from 'bullmq';

/**
 * Runs a worker once its connection is ready: on Postgres BullMQ remembers a first connection that failed, and a worker
 * that runs by then would spin on that failure for ever.
 */
export async function startWorker(worker: Worker, logger: Logger): Promise<void> {
  worker.on('error', (error) => logger.warn(`queue: ${error.message}`));
  await worker.waitUntilReady();
  worker.run().catch((error: unknown) => logger.fatal(`this worker has stopped: ${String(error)}`));
}
