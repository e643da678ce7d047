import { BullModule } from '@nestjs/bullmq';
import { Module } from '@nestjs/common';
import { errorLogOf, PRODUCER } from '../../queue/queue.module.js';
import { OrdersModule } from '../orders.module.js';
import { SANDBOX_QUEUE, SandboxOperator, SandboxOperatorProcessor } from './sandbox-operator.js';
import { SandboxOrdersController } from './sandbox-orders.controller.js';

/** The sandbox's cinema operator. Only a sandbox imports it. */
@Module({
  imports: [OrdersModule, BullModule.registerQueue({ name: SANDBOX_QUEUE, configKey: PRODUCER })],
  providers: [SandboxOperator, errorLogOf(SANDBOX_QUEUE)],
  exports: [SandboxOperator],
})
class SandboxOperatorModule {}

/** The REST route with which a client completes its own orders. */
@Module({ imports: [OrdersModule, SandboxOperatorModule], controllers: [SandboxOrdersController] })
export class SandboxRoutesModule {}

/** Completes the orders whose delay has ended. */
@Module({ imports: [SandboxOperatorModule], providers: [SandboxOperatorProcessor] })
export class SandboxWorkerModule {}
