import 'reflect-metadata';
import { Controller, Get, type INestApplication, Module, UseGuards } from '@nestjs/common';
import { APP_FILTER, APP_INTERCEPTOR, NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { afterEach, describe, expect, test } from '@jest/globals';
import type { Request } from 'express';
import {
  AuthMetadataModule,
  AuthModule,
  AuthorizationRoutesModule,
  BearerGuard,
  ClientApplications,
  ClientsService,
  CurrentResourceOwner,
  type ResourceOwner,
  type ResourceOwnerAuthenticator,
  type SignIn,
  UsherModule,
} from '../../src/index.js';
import { fieldsOf, REDIRECT_URI, TestBrowser, challengeOf } from '../auth/authorize/support.js';
import { type Backend, createBackend } from '../support/backend.js';
import { freePort } from '../support/ports.js';
import { basic } from '../support/usher.js';
import { DataInterceptor, EveryFilter, post } from './host-parts.js';

/** The application's own session: a cookie with the member's number. */
class StaffAccounts implements ResourceOwnerAuthenticator {
  currentOwner({ headers }: Request): ResourceOwner | null {
    const [, id] = /staff=(\d+)/.exec(headers.cookie ?? '') ?? [];
    return id === undefined ? null : { id, name: `Staff ${id}` };
  }

  signInUrl({ returnTo }: SignIn): string {
    return `/staff/sign-in?next=${encodeURIComponent(returnTo)}`;
  }
}

/** Routes of the application. */
@Controller('tickets')
@UseGuards(BearerGuard)
class TicketsController {
  @Get('all')
  all(): string[] {
    return [];
  }

  @Get('mine')
  mine(@CurrentResourceOwner() ownerId: string | null): { ownerId: string | null } {
    return { ownerId };
  }
}

let application: INestApplication | null = null;
let backend: Backend | null = null;
afterEach(async () => {
  await application?.close();
  await backend?.drop();
});

async function start(adapter: ExpressAdapter | FastifyAdapter): Promise<string> {
  backend = await createBackend();
  const port = await freePort();
  const publicUrl = `http://127.0.0.1:${port}/api`;
  const { DATABASE_URL, QUEUE_URL, QUEUE_PREFIX } = backend.settings;
  @Module({
    imports: [
      UsherModule.forRoot({
        environment: 'sandbox',
        masterKeys: `test:${Buffer.alloc(32, 7).toString('base64')}`,
        database: { url: DATABASE_URL! },
        queue: { ...(QUEUE_URL && { url: QUEUE_URL }), ...(QUEUE_PREFIX && { prefix: QUEUE_PREFIX }) },
        publicUrl,
        deliver: false,
        resourceOwners: new StaffAccounts(),
      }),
      AuthModule,
      AuthMetadataModule,
      AuthorizationRoutesModule,
    ],
    controllers: [TicketsController],
    providers: [
      { provide: APP_INTERCEPTOR, useClass: DataInterceptor },
      { provide: APP_FILTER, useClass: EveryFilter },
    ],
  })
  class HostModule {}
  application = await NestFactory.create(HostModule, adapter as never, { logger: false, abortOnError: false });
  application.setGlobalPrefix('api');
  await application.listen(port, '127.0.0.1');
  return publicUrl;
}

describe.each([
  ['Express', () => new ExpressAdapter()],
  ['Fastify', () => new FastifyAdapter()],
])('an application on %s with resource owners of its own', (_, adapter) => {
  test('lets them allow a client, below its prefix', async () => {
    const publicUrl = await start(adapter());
    const clients = application!.get(ClientsService, { strict: false });
    const { client, secret } = await clients.create('Aggregator', null);
    await application!
      .get(ClientApplications, { strict: false })
      .configure(client.id, { redirectUris: [REDIRECT_URI] });
    const { origin } = new URL(publicUrl);
    const metadata = await fetch(`${origin}/.well-known/oauth-authorization-server/api`);
    expect(await metadata.json()).toMatchObject({ authorization_endpoint: `${publicUrl}/auth/authorize` });
    const query = new URLSearchParams({
      response_type: 'code',
      client_id: client.id,
      redirect_uri: REDIRECT_URI,
      state: 'x',
      code_challenge: challengeOf('v'.repeat(43)),
      code_challenge_method: 'S256',
    });
    const browser = new TestBrowser(origin);
    const { location } = await browser.get(`/api/auth/authorize?${query}`);
    const signIn = new URL(location);
    expect(signIn.href).toMatch(`${origin}/staff/sign-in?next=`);
    browser.cookies.set('staff', '17');
    const page = await browser.get(signIn.searchParams.get('next')!);
    expect(page.text).toContain('Staff 17');
    const { form } = fieldsOf(page.text);
    const allowed = await browser.post('/api/auth/consent', { form: form!, decision: 'allow' });
    expect(allowed.status).toBe(303);
    const answered = new URL(allowed.location).searchParams;
    expect(answered.get('iss')).toBe(publicUrl);
    const credentials = basic(client.id, secret);
    const exchange = { grant_type: 'authorization_code', code: answered.get('code'), code_verifier: 'v'.repeat(43) };
    const tokens = await post(`${publicUrl}/auth/token`, credentials, exchange);
    const { access_token: token } = tokens.body as { access_token: string };
    expect((await post(`${publicUrl}/auth/introspect`, credentials, { token })).body).toMatchObject({
      sub: 'owner:17',
    });
    const get = async (path: string) => {
      const response = await fetch(`${publicUrl}/tickets/${path}`, { headers: { authorization: `Bearer ${token}` } });
      return [response.status, await response.json()];
    };
    expect(await get('mine')).toEqual([200, { data: { ownerId: '17' } }]);
    // EveryFilter of the application answers the guard's 403.
    expect((await get('all'))[0]).toBe(418);
    const missing = await browser.get('/api/auth/authorize?client_id=nobody');
    expect([missing.status, missing.headers.get('content-type')]).toEqual([400, 'text/html; charset=utf-8']);
  });
});
