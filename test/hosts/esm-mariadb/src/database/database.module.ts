import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { addTransactionalDataSource, initializeTransactionalContext } from 'typeorm-transactional';
import { dataSourceOptions } from './data-source.js';

initializeTransactionalContext();

@Module({
  imports: [
    TypeOrmModule.forRootAsync({
      useFactory: () => dataSourceOptions,
      dataSourceFactory: async () => addTransactionalDataSource(new DataSource(dataSourceOptions)),
    }),
  ],
})
export class DatabaseModule {}
