import 'reflect-metadata';
import { execFileSync } from 'node:child_process';
import {
  BadRequestException,
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  type INestApplication,
  Module,
  PayloadTooLargeException,
  UseGuards,
  ValidationPipe,
} from '@nestjs/common';
import { APP_GUARD, APP_PIPE, NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { DataSource } from 'typeorm';
import {
  AuthModule,
  BearerGuard,
  Client,
  ClientsService,
  CurrentClient,
  OrderRoutesModule,
  OrdersModule,
  OrdersService,
  UsherModule,
  WebhookModule,
  WebhookResends,
  WebhookRoutesModule,
} from '../../src/index.js';
import { USHER_DATA_SOURCE } from '../../src/database/data-source.js';
import { heldBy } from '../../src/auth/bearer/bearer.guard.js';
import { webhookHealth } from '../../src/webhooks/webhook-health.js';
import { listWebhooks } from '../../src/webhooks/webhook-queries.js';
import { type Backend, createBackend } from '../support/backend.js';
import { basic, NEW_ORDER } from '../support/usher.js';
import { optionsOn, post } from './host-parts.js';

@Controller('seats')
@UseGuards(BearerGuard)
class SeatsController {
  @Get()
  seats(@CurrentClient() client: Client): object {
    return { of: client.id };
  }
}

/** What class-validator and class-transformer do to a class without rules, such as `Client`. */
const STRIPS = {
  transformerPackage: {
    plainToInstance: (type: new () => object, value: object) => Object.assign(new type(), value),
    classToPlain: (value: object) => ({ ...value }),
  },
  validatorPackage: {
    validate: (value: object) => {
      for (const name of Object.keys(value)) Reflect.deleteProperty(value, name);
      return [];
    },
  },
};

/** Throws what the header names. */
class RefusingGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const { headers } = context.switchToHttp().getRequest<{ headers: Record<string, string> }>();
    if (headers['x-refuse'] === 'tenant') throw new BadRequestException('send the header X-Tenant');
    if (headers['x-refuse'] === 'fields') throw new BadRequestException(['a is missing', 'b is too long']);
    if (headers['x-refuse'] === 'objects') throw new BadRequestException([{ field: 'a', fault: 'is missing' }]);
    if (headers['x-refuse'] === 'size') throw new PayloadTooLargeException('at most 10 tickets');
    return true;
  }
}

let backend: Backend;
let host: INestApplication;
let url: string;

beforeAll(async () => {
  backend = await createBackend();
  @Module({
    imports: [
      UsherModule.forRoot({ ...optionsOn(backend), deliver: false }),
      AuthModule,
      OrdersModule,
      OrderRoutesModule,
      WebhookModule,
      WebhookRoutesModule,
    ],
    controllers: [SeatsController],
    providers: [
      { provide: APP_GUARD, useClass: RefusingGuard },
      {
        provide: APP_PIPE,
        useFactory: () =>
          new ValidationPipe({ whitelist: true, validateCustomDecorators: true, ...(STRIPS as object) }),
      },
    ],
  })
  class HostModule {}
  host = await NestFactory.create(HostModule, new ExpressAdapter(), { logger: false, abortOnError: false });
  await host.listen(0, '127.0.0.1');
  url = await host.getUrl();
  // The default of TypeORM 0.3.
  const { options } = host.get<DataSource>(USHER_DATA_SOURCE, { strict: false });
  Object.assign(options, { invalidWhereValuesBehavior: { undefined: 'ignore', null: 'ignore' } });
});
afterAll(async () => {
  await host.close();
  await backend.drop();
});

/** A client with an order, and how it reads. */
async function clientWithOrder(name: string) {
  const { client, secret } = await host.get(ClientsService, { strict: false }).create(name, 'http://127.0.0.1:4900/');
  const { key } = await host.get(OrdersService, { strict: false }).create(client, NEW_ORDER);
  const grant = { grant_type: 'client_credentials' };
  const { body } = await post(`${url}/auth/token`, basic(client.id, secret), grant);
  const authorization = `Bearer ${(body as { access_token: string }).access_token}`;
  const read = (path: string) => fetch(url + path, { headers: { authorization } });
  return { id: client.id, key, read };
}

test('a ValidationPipe that strips what has no rules leaves the client of a request as it is', async () => {
  const [mine, other] = [await clientWithOrder('Mine'), await clientWithOrder('Other')];
  expect(await (await mine.read('/seats')).json()).toEqual({ of: mine.id });
  expect((await mine.read(`/movie-orders/${mine.key}`)).status).toBe(200);
  expect((await mine.read(`/movie-orders/${other.key}`)).status).toBe(404);
  expect((await mine.read('/webhooks/health')).status).toBe(200);
});

test('rows are not read for a client that is undefined, also where the DataSource ignores undefined', async () => {
  const { key } = await clientWithOrder('Other');
  const nobody = { clientId: undefined as never, ownerId: null };
  const dataSource = host.get<DataSource>(USHER_DATA_SOURCE, { strict: false });
  const resends = host.get(WebhookResends, { strict: false });
  const reads: (() => Promise<unknown>)[] = [
    () => host.get(OrdersService, { strict: false }).get({} as Client, key),
    () => listWebhooks(dataSource, { holder: nobody }),
    () => webhookHealth(dataSource, nobody.clientId),
    () => resends.start(nobody, {}),
    () => resends.show(nobody, 'an id'),
  ];
  for (const read of reads)
    await expect(Promise.resolve().then(read)).rejects.toThrow('the client or the resource owner is undefined');
  expect(() => heldBy({ clientId: 'c', ownerId: undefined as never })).toThrow(TypeError);
});

test.each([
  ['tenant', 400, 'send the header X-Tenant'],
  ['fields', 400, 'a is missing; b is too long'],
  ['objects', 400, 'Bad Request Exception'],
  ['size', 413, 'at most 10 tickets'],
])("an error of the application's own guard keeps its text (%s)", async (name, status, text) => {
  const headers = { 'x-refuse': name };
  const problem = await fetch(`${url}/movie-orders/k`, { headers });
  expect([problem.status, await problem.json()]).toEqual([status, expect.objectContaining({ status, detail: text })]);
  const token = await fetch(`${url}/auth/token`, { method: 'POST', headers });
  expect([token.status, await token.json()]).toEqual([status, { error: 'invalid_request', error_description: text }]);
});

test('every decorator of a parameter hides its type from pipes', () => {
  const makers = execFileSync('git', ['grep', '-l', 'createParamDecorator(', 'src'], { encoding: 'utf8' });
  expect(makers.trim()).toBe('src/http/exchange.ts');
});
