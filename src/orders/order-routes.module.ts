import { type DynamicModule, Module } from '@nestjs/common';
import { AuthModule } from '../auth/auth.module.js';
import type { Environment } from '../core/identifier.js';
import { InternalOrdersController, MovieOrdersController, SandboxOrdersController } from './movie-orders.controller.js';
import { OrdersModule } from './orders.module.js';
import { SandboxOperatorModule } from './sandbox-operator.module.js';

/** The REST routes of movie orders; only the sandbox lets a client play the cinema operator. */
@Module({})
export class OrderRoutesModule {
  static forEnvironment(environment: Environment): DynamicModule {
    const isSandbox = environment === 'sandbox';
    return {
      module: OrderRoutesModule,
      imports: [AuthModule, OrdersModule, ...(isSandbox ? [SandboxOperatorModule] : [])],
      controllers: [MovieOrdersController, InternalOrdersController, ...(isSandbox ? [SandboxOrdersController] : [])],
    };
  }
}
