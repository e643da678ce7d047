import type { INestApplication, NestApplicationOptions } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { AppModule } from './app.module.js';

/** The application on Express, or on Fastify where HTTP_ADAPTER says so. */
export async function createApplication(options: NestApplicationOptions = {}): Promise<INestApplication> {
  const application =
    process.env.HTTP_ADAPTER === 'fastify'
      ? await NestFactory.create(AppModule, new FastifyAdapter(), options)
      : await NestFactory.create(AppModule, options);
  application.setGlobalPrefix('api');
  application.enableShutdownHooks();
  return application;
}
