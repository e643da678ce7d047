import { type DynamicModule, Module } from '@nestjs/common';
import { type Config, UsherModule } from 'usher';
import { BookingsModule } from './bookings/bookings.module.js';

@Module({})
export class AppModule {
  static forRoot(config: Config): DynamicModule {
    return { module: AppModule, imports: [UsherModule.forRoot(config), BookingsModule] };
  }
}
