import 'reflect-metadata';
import { type INestApplication, Module, type ModuleMetadata, VersioningType } from '@nestjs/common';
import { NestFactory, RouterModule } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import {
  AuthMetadataModule,
  AuthModule,
  OrderRoutesModule,
  OrdersModule,
  UsherModule,
  WebhookModule,
} from '../../src/index.js';
import { type Backend, createBackend } from '../support/backend.js';
import { optionsOn } from './host-parts.js';

let backend: Backend;
let application: INestApplication;
beforeAll(async () => void (backend = await createBackend()));
afterEach(() => application.close());
afterAll(() => backend.drop());

/** An application without a public URL. */
function moduleWith(imports: NonNullable<ModuleMetadata['imports']>): new () => object {
  @Module({
    imports: [
      UsherModule.forRoot(optionsOn(backend)),
      ...[AuthModule, AuthMetadataModule, OrdersModule, OrderRoutesModule, WebhookModule, ...imports],
    ],
  })
  class HostModule {}
  return HostModule;
}

const versions = (host: INestApplication, defaultVersion: string) =>
  host.enableVersioning({ type: VersioningType.URI, defaultVersion });

test.each<[string, string, (host: INestApplication) => unknown, NonNullable<ModuleMetadata['imports']>]>([
  ['nothing', '', () => undefined, []],
  ['a global prefix', '/api', (host) => host.setGlobalPrefix('api'), []],
  ['URI versions', '/v1', (host) => versions(host, '1'), []],
  [
    'both, and RouterModule',
    '/api/v2/partners',
    (host) => versions(host.setGlobalPrefix('api') as INestApplication, '2'),
    [RouterModule.register([{ path: 'partners', module: AuthModule }])],
  ],
])(
  'with %s before its routes, an application announces the addresses that it serves',
  async (_, base, set, imports) => {
    for (const adapter of [new FastifyAdapter(), new ExpressAdapter()]) {
      application = await NestFactory.create(moduleWith(imports), adapter as never, {
        logger: false,
        abortOnError: false,
      });
      set(application);
      await application.listen(0, '127.0.0.1');
      const url = await application.getUrl();
      const metadata = await fetch(`${url}/.well-known/oauth-authorization-server${base}`);
      const body = (await metadata.json()) as { issuer: string; token_endpoint: string };
      const { issuer, token_endpoint } = body;
      expect(body).not.toHaveProperty('service_documentation');
      expect([issuer, token_endpoint]).toEqual([url + base, `${url}${base}/auth/token`]);
      const answer = await fetch(token_endpoint, { method: 'POST', body: new URLSearchParams({ grant_type: 'x' }) });
      expect([answer.status, await answer.json()]).toEqual([401, expect.objectContaining({ error: 'invalid_client' })]);
      const orders = await fetch(`${url}${base.replace('/partners', '')}/movie-orders`);
      expect(orders.status).toBe(401);
      expect(await orders.text()).toContain(` POST ${base}/auth/token`);
      await application.close();
    }
  },
);
