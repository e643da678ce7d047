// The Nest echo with Usher's BearerGuard in front: a host application that protects a route of its own.
import 'reflect-metadata';
import { Controller, Get, Module, UseGuards } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { BearerGuard, UsherModule } from '../../dist/index.js';

const { DATABASE_URL, QUEUE_URL, QUEUE_PREFIX, USHER_MASTER_KEYS } = process.env;

class OrderController {
  order() {
    return { key: 'TW92aWVPcmRlcjox', status: 'PENDING' };
  }
}
const { prototype } = OrderController;
const descriptor = Object.getOwnPropertyDescriptor(prototype, 'order');
Get('movie-orders/:key')(prototype, 'order', descriptor);
UseGuards(BearerGuard)(prototype, 'order', descriptor);
Controller()(OrderController);
class HostModule {}
Module({
  imports: [
    UsherModule.forRoot({
      environment: 'sandbox',
      masterKeys: USHER_MASTER_KEYS,
      database: { url: DATABASE_URL },
      queue: { prefix: QUEUE_PREFIX, ...(QUEUE_URL && { url: QUEUE_URL }) },
      deliver: false,
    }),
  ],
  controllers: [OrderController],
})(HostModule);

const app = await NestFactory.create(HostModule, new FastifyAdapter(), { logger: false });
app.enableShutdownHooks();
await app.listen(0, '127.0.0.1');
console.log(await app.getUrl());
