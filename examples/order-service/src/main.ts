import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { loadConfig } from 'usher';
import { AppModule } from './app.module.js';

// The same settings as Usher's own: DATABASE_URL, QUEUE_URL, USHER_MASTER_KEYS, PORT, …
const config = loadConfig();
const application = await NestFactory.create<NestFastifyApplication>(AppModule.forRoot(config), new FastifyAdapter());
application.enableShutdownHooks();
await application.listen(config.port, config.host);
