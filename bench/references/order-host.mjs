// A host application with Usher's order routes and a listener of its own, so that each completion is a transaction of its own.
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { OnOrderCompleted, OrderRoutesModule, OrdersModule, UsherModule, WebhookModule } from '../../dist/index.js';

const { DATABASE_URL, QUEUE_URL, QUEUE_PREFIX, USHER_MASTER_KEYS, INTERNAL_USER, INTERNAL_PASSWORD } = process.env;

class Loyalty {
  async onOrderCompleted() {}
}
const { prototype } = Loyalty;
const descriptor = Object.getOwnPropertyDescriptor(prototype, 'onOrderCompleted');
OnOrderCompleted()(prototype, 'onOrderCompleted', descriptor);

class HostModule {}
Module({
  imports: [
    UsherModule.forRoot({
      environment: 'sandbox',
      masterKeys: USHER_MASTER_KEYS,
      database: { url: DATABASE_URL },
      queue: { prefix: QUEUE_PREFIX, url: QUEUE_URL },
      internal: { user: INTERNAL_USER, password: INTERNAL_PASSWORD },
      notifyUrls: { allowPrivate: true },
      limits: { orders: 'off', pendingWebhooks: 'off' },
      deliver: false,
    }),
    OrdersModule,
    WebhookModule,
    OrderRoutesModule,
  ],
  providers: [Loyalty],
})(HostModule);

const app = await NestFactory.create(HostModule, new FastifyAdapter(), { logger: false });
app.enableShutdownHooks();
await app.listen(0, '127.0.0.1');
console.log(await app.getUrl());
