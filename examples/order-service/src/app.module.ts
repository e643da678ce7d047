import { Module, ValidationPipe } from '@nestjs/common';
import { ConditionalModule, ConfigModule, ConfigService } from '@nestjs/config';
import { APP_FILTER, APP_GUARD, APP_INTERCEPTOR, APP_PIPE } from '@nestjs/core';
import { getDataSourceToken, TypeOrmModule } from '@nestjs/typeorm';
import {
  AuthMetadataModule,
  AuthModule,
  OrderRoutesModule,
  OrdersModule,
  SandboxRoutesModule,
  SandboxWorkerModule,
  UsherModule,
  WebhookModule,
  WebhookRoutesModule,
} from 'nest-usher';
import { BookingsModule } from './bookings/bookings.module.js';
import { dataSourceOptions } from './database/data-source-options.js';
import { DataInterceptor } from './http/data.interceptor.js';
import { EveryErrorFilter } from './http/every-error.filter.js';
import { StaffGuard } from './staff/staff.guard.js';
import { StaffModule } from './staff/staff.module.js';
import { TicketsModule } from './tickets/tickets.module.js';
import { usherOptions } from './usher-options.js';

type Environment = Record<string, string | undefined>;
const isSandbox = (env: Environment): boolean => env.USHER_ENVIRONMENT !== 'production';
const hasRedis = (env: Environment): boolean => env.REDIS_URL !== undefined;

@Module({
  imports: [
    ConfigModule.forRoot({ isGlobal: true }),
    TypeOrmModule.forRootAsync({ inject: [ConfigService], useFactory: dataSourceOptions }),
    UsherModule.forRootAsync({ inject: [ConfigService, getDataSourceToken()], useFactory: usherOptions }),
    AuthModule,
    AuthMetadataModule,
    OrdersModule,
    OrderRoutesModule,
    WebhookModule,
    WebhookRoutesModule,
    // Nest fixes the modules before it reads options, so the environment decides.
    ConditionalModule.registerWhen(SandboxRoutesModule, isSandbox),
    ConditionalModule.registerWhen(SandboxWorkerModule, isSandbox),
    ConditionalModule.registerWhen(TicketsModule, hasRedis),
    BookingsModule,
    StaffModule,
  ],
  providers: [
    {
      provide: APP_PIPE,
      useValue: new ValidationPipe({ whitelist: true, forbidNonWhitelisted: true, transform: true }),
    },
    { provide: APP_FILTER, useClass: EveryErrorFilter },
    { provide: APP_GUARD, useClass: StaffGuard },
    { provide: APP_INTERCEPTOR, useClass: DataInterceptor },
  ],
})
export class AppModule {}
