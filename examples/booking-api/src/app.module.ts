import { Module } from '@nestjs/common';
import { ConfigModule, ConfigService } from '@nestjs/config';
import { getDataSourceToken } from '@nestjs/typeorm';
import { AuthMetadataModule, AuthModule, UsherModule } from 'nest-usher';
import { BookingsModule } from './bookings/bookings.module';
import { DatabaseModule } from './database/database.module';
import { usherOptions } from './usher-options';

@Module({
  imports: [
    ConfigModule.forRoot({ isGlobal: true }),
    DatabaseModule,
    UsherModule.forRootAsync({ inject: [ConfigService, getDataSourceToken()], useFactory: usherOptions }),
    AuthModule,
    AuthMetadataModule,
    BookingsModule,
  ],
})
export class AppModule {}
