import 'reflect-metadata';
import { Controller, Get, type INestApplication, Module, VersioningType } from '@nestjs/common';
import { NestFactory, RouterModule } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { DocumentBuilder, SwaggerModule } from '@nestjs/swagger';
import { Validator } from '@seriousme/openapi-schema-validator';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import {
  addUsherPaths,
  AuthMetadataModule,
  AuthModule,
  OrderRoutesModule,
  OrdersModule,
  UsherModule,
  WebhookModule,
} from '../../src/index.js';
import { type Backend, createBackend } from '../support/backend.js';
import { optionsOn } from './host-parts.js';

@Controller('bookings')
class BookingsController {
  @Get()
  list(): string[] {
    return [];
  }
}

let backend: Backend;
let application: INestApplication;
beforeAll(async () => {
  backend = await createBackend();
  @Module({
    imports: [
      UsherModule.forRoot({ ...optionsOn(backend), deliver: false }),
      ...[AuthModule, AuthMetadataModule, OrdersModule, OrderRoutesModule, WebhookModule],
      RouterModule.register([{ path: 'partners', module: OrderRoutesModule }]),
    ],
    controllers: [BookingsController],
  })
  class HostModule {}
  application = await NestFactory.create(HostModule, new FastifyAdapter(), { logger: false, abortOnError: false });
  application.setGlobalPrefix('api').enableVersioning({ type: VersioningType.URI, defaultVersion: '1' });
  await application.listen(0, '127.0.0.1');
});
afterAll(async () => {
  await application.close();
  await backend.drop();
});

const documentOf = (version: string) =>
  SwaggerModule.createDocument(application, new DocumentBuilder().setOpenAPIVersion(version).addBearerAuth().build());

test("the application's own document leaves Usher's routes out", () => {
  expect(Object.keys(documentOf('3.0.0').paths)).toEqual(['/api/v1/bookings']);
});

describe.each(['3.0.0', '3.1.0'])('addUsherPaths() on OpenAPI %s', (version) => {
  test('adds the routes that the application serves, where it serves them', async () => {
    const { paths } = await addUsherPaths(documentOf(version), application);
    expect(Object.keys(paths).sort()).toEqual([
      '/.well-known/oauth-authorization-server/api/v1',
      '/api/v1/auth/introspect',
      '/api/v1/auth/refresh',
      '/api/v1/auth/revoke',
      '/api/v1/auth/token',
      '/api/v1/bookings',
      '/api/v1/partners/internal/movie-orders/{key}/complete',
      '/api/v1/partners/movie-orders',
      '/api/v1/partners/movie-orders/totals',
      '/api/v1/partners/movie-orders/{key}',
    ]);
    for (const [path, methods] of Object.entries(paths))
      for (const method of Object.keys(methods as object)) {
        const response = await fetch(`${await application.getUrl()}${path.replace('{key}', 'a')}`, {
          method: method.toUpperCase(),
        });
        expect([path, method, response.status]).not.toEqual([path, method, 404]);
      }
  });

  test('gives a valid document, whose names do not collide', async () => {
    const document = await addUsherPaths(documentOf(version), application);
    expect(
      await new Validator().validate(JSON.parse(JSON.stringify(document)) as Record<string, unknown>),
    ).toMatchObject({
      valid: true,
    });
    const { schemas, securitySchemes } = document.components ?? {};
    expect(Object.keys(schemas ?? {}).every((name) => name.startsWith('Usher'))).toBe(true);
    expect(Object.keys(securitySchemes ?? {}).sort()).toEqual([
      'UsherBasic',
      'UsherBearer',
      'UsherInternal',
      'UsherOauth2',
      'bearer',
    ]);
    const text = JSON.stringify(document);
    for (const ofTheServer of ['X-Request-Id', 'specification']) expect(text).not.toContain(ofTheServer);
    for (const [, name = ''] of text.matchAll(/"#\/components\/schemas\/(\w+)"/g)) expect(schemas).toHaveProperty(name);
  });
});
