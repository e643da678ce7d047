// An application with the parts that Usher has, and nothing else: Nest on Fastify, TypeORM with one table, BullMQ with one
// queue and one worker. With the argument "list" it is a command: it reads the table, prints it and ends.
import 'reflect-metadata';
import { BullModule, getQueueToken } from '@nestjs/bullmq';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { TypeOrmModule } from '@nestjs/typeorm';
import { Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { DataSource, EntitySchema } from 'typeorm';

const { DATABASE_URL, QUEUE_URL, QUEUE_PREFIX } = process.env;
const isCommand = process.argv[2] === 'list';

const Note = new EntitySchema({
  name: 'Note',
  tableName: 'note',
  columns: { id: { type: 'int', primary: true }, text: { type: 'varchar', length: 200 } },
});
const connection = new Redis(QUEUE_URL, { maxRetriesPerRequest: null });

class EmptyModule {}
Module({
  imports: [
    TypeOrmModule.forRoot({ type: 'mariadb', url: DATABASE_URL, entities: [Note], synchronize: true }),
    BullModule.forRoot({ connection, prefix: QUEUE_PREFIX }),
    BullModule.registerQueue({ name: 'empty' }),
  ],
})(EmptyModule);

if (isCommand) {
  const app = await NestFactory.createApplicationContext(EmptyModule, { logger: false });
  const notes = await app.get(DataSource).getRepository(Note).find({ take: 100 });
  await app.get(getQueueToken('empty')).waitUntilReady();
  console.log(JSON.stringify(notes));
  process.exit();
}
const app = await NestFactory.create(EmptyModule, new FastifyAdapter(), { logger: false });
const worker = new Worker('empty', async () => undefined, { connection, prefix: QUEUE_PREFIX });
await worker.waitUntilReady();
await app.listen(0, '127.0.0.1');
console.log(await app.getUrl());
process.once('SIGTERM', () => process.exit());
