import { BullModule, InjectQueue } from '@nestjs/bullmq';
import { Module } from '@nestjs/common';
import type { Queue } from 'bullmq';
import { logErrors } from '../queue/log-errors.js';
import { PRODUCER } from '../queue/queue.module.js';
import { OrdersModule } from './orders.module.js';
import { SANDBOX_PRODUCER, SANDBOX_QUEUE, SandboxOperator, SandboxOperatorProcessor } from './sandbox-operator.js';

/** Plays the cinema operator; the sandbox alone has it. */
@Module({
  imports: [
    OrdersModule,
    BullModule.registerQueueAsync({
      name: SANDBOX_PRODUCER,
      configKey: PRODUCER,
      useFactory: () => ({ name: SANDBOX_QUEUE }),
    }),
  ],
  providers: [SandboxOperator],
  exports: [SandboxOperator],
})
export class SandboxOperatorModule {
  constructor(@InjectQueue(SANDBOX_PRODUCER) queue: Queue) {
    logErrors(queue);
  }
}

/** In workers. */
@Module({ imports: [SandboxOperatorModule], providers: [SandboxOperatorProcessor] })
export class SandboxOperatorWorkerModule {}
