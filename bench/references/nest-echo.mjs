// The echo server in Nest on Fastify: a controller without guards, pipes or database. Plain JavaScript, so without
// decorators.
import 'reflect-metadata';
import { Body, Controller, Get, HttpCode, Module, Post } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';

class EchoController {
  echo(body) {
    return body;
  }
  order() {
    return { key: 'TW92aWVPcmRlcjox', status: 'PENDING' };
  }
}
const { prototype } = EchoController;
const decorate = (name, ...decorators) => {
  const descriptor = Object.getOwnPropertyDescriptor(prototype, name);
  for (const decorator of decorators) decorator(prototype, name, descriptor);
};
decorate('echo', Post('auth/token'), HttpCode(200));
Body()(prototype, 'echo', 0);
decorate('order', Get('movie-orders/:key'));
Controller()(EchoController);
class EchoModule {}
Module({ controllers: [EchoController] })(EchoModule);

const app = await NestFactory.create(EchoModule, new FastifyAdapter(), { logger: false });
app.enableShutdownHooks();
await app.listen(0, '127.0.0.1');
console.log(await app.getUrl());
