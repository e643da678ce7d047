import 'reflect-metadata';
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { getQueueToken } from '@nestjs/bullmq';
import type { INestApplication } from '@nestjs/common';
import type { Queue } from 'bullmq';
import { DataSource } from 'typeorm';
import { ClientsService, WebhookService } from 'nest-usher';
import { type Backend, prepare } from './environment.js';
import { eventually, Partner } from './partner.js';

const PUBLIC_URL = 'https://api.cinema.example/v1';
const TOKEN_FIELDS = ['access_token', 'expires_in', 'refresh_token', 'refresh_token_expires_in', 'token_type'];

interface Answer {
  status: number;
  headers: Headers;
  // The tests assert its shape.
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  body: any;
}

/** Starts the application in a process of its own and waits for its end. */
async function startAlone(): Promise<{ code: number | null; output: string }> {
  const main = fileURLToPath(new URL('../src/main.js', import.meta.url));
  const env = { ...process.env, PORT: '0', NO_COLOR: '1' };
  const child = spawn(process.execPath, [main], { env, timeout: 60_000, stdio: ['ignore', 'pipe', 'pipe'] });
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { code: child.exitCode, output: stdout + stderr };
}

/** The whole application over HTTP, as its clients and its staff use it. */
export function testApplication(backend: Backend, adapter: 'express' | 'fastify'): void {
  void describe(`the application on ${adapter} and ${backend}`, () => {
    let application: INestApplication;
    let partner: Partner;
    let dropDatabase: () => Promise<void>;
    /** What the application printed when it was started before the migrations. */
    let refusal: { code: number | null; output: string };
    let client: { id: string; secret: string };
    let tokens: { access_token: string; refresh_token: string };

    before(async () => {
      partner = await Partner.start();
      dropDatabase = await prepare(backend, { HTTP_ADAPTER: adapter, PUBLIC_URL });
      refusal = await startAlone();
      const { migrate } = await import('../src/migrate.js');
      await migrate();
      const { createApplication } = await import('../src/create-application.js');
      application = await createApplication({ logger: false, abortOnError: false });
      await application.listen(0, '127.0.0.1');
      const created = await application.get(ClientsService, { strict: false }).create('Partner', partner.notifyUrl);
      client = { id: created.client.id, secret: created.secret };
    });
    after(async () => {
      await application?.close();
      await partner.stop();
      await dropDatabase();
    });

    const basic = (user: string, password: string) => `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;

    async function call(method: string, path: string, authorization?: string, body?: object): Promise<Answer> {
      const response = await fetch((await application.getUrl()) + path, {
        method,
        headers: { ...(body && { 'content-type': 'application/json' }), ...(authorization && { authorization }) },
        ...(body && { body: JSON.stringify(body) }),
      });
      const content = await response.text();
      return { status: response.status, headers: response.headers, body: content === '' ? null : JSON.parse(content) };
    }

    const asClient = () => `Bearer ${tokens.access_token}`;

    test('refused to start before the migrations were run, and said what to do', () => {
      assert.notEqual(refusal.code, 0);
      assert.match(refusal.output, /add usherMigrations to the migrations of your DataSource/);
    });

    test('issues a token and refreshes it, with exactly the specified fields', async () => {
      const credentials = basic(client.id, client.secret);
      const issued = await call('POST', '/api/auth/token', credentials, { grant_type: 'client_credentials' });
      assert.equal(issued.status, 200);
      assert.deepEqual(Object.keys(issued.body).sort(), TOKEN_FIELDS);
      const { refresh_token } = issued.body;
      const refreshed = await call('POST', '/api/auth/refresh', credentials, {
        grant_type: 'refresh_token',
        refresh_token,
      });
      assert.equal(refreshed.status, 200);
      assert.deepEqual(Object.keys(refreshed.body).sort(), TOKEN_FIELDS);
      assert.notEqual(refreshed.body.access_token, issued.body.access_token);
      tokens = refreshed.body;
    });

    test('also issues a token for a form, as OAuth libraries send it', async () => {
      const response = await fetch(`${await application.getUrl()}/api/auth/token`, {
        method: 'POST',
        headers: { authorization: basic(client.id, client.secret) },
        body: new URLSearchParams({ grant_type: 'client_credentials' }),
      });
      assert.equal(response.status, 200);
    });

    test('refuses a wrong secret with an OAuth error and a challenge', async () => {
      const { status, headers, body } = await call('POST', '/api/auth/token', basic(client.id, 'wrong'), {
        grant_type: 'client_credentials',
      });
      assert.equal(status, 401);
      assert.equal(body.error, 'invalid_client');
      assert.match(headers.get('www-authenticate') ?? '', /^Basic realm=/);
    });

    test('publishes the OAuth metadata at the root, with the public addresses', async () => {
      const { status, body } = await call('GET', '/.well-known/oauth-authorization-server/v1');
      assert.equal(status, 200);
      assert.equal(body.token_endpoint, `${PUBLIC_URL}/auth/token`);
      assert.equal((await call('GET', '/api/.well-known/oauth-authorization-server/v1')).status, 404);
    });

    test('keeps its own guard, basic strategy, pipe, filter and interceptor on its own routes', async () => {
      const refused = await call('POST', '/api/staff/movie-orders/any/completion', asClient(), {});
      assert.deepEqual([refused.status, refused.body.failure?.status], [401, 401]);
      const login = await call('POST', '/api/staff/login', basic('usher', 'popcorn'));
      assert.equal(typeof login.body.data.token, 'string');
      const clientLogin = await call('POST', '/api/staff/login', basic(client.id, client.secret));
      assert.equal(clientLogin.status, 401);
      const invalid = await call('POST', '/api/bookings', asClient(), { seats: 'F7', amount: 4200, free: true });
      assert.equal(invalid.status, 400);
      assert.equal(invalid.body.failure.status, 400);
    });

    test('refuses a client without a token', async () => {
      for (const path of ['/api/movie-orders/any', '/api/bookings/any']) {
        const { status, headers } = await call('GET', path);
        assert.equal(status, 401);
        assert.match(headers.get('www-authenticate') ?? '', /^Bearer /);
      }
    });

    test('notifies a client of a movie order that the staff completes', async () => {
      const created = await call('POST', '/api/movie-orders', asClient(), {
        currencyCode: 'MYR',
        totalAmount: 4200,
        bookingAmount: 200,
        payableAmount: 4300,
      });
      assert.equal(created.status, 201, JSON.stringify(created.body));
      const { key } = created.body.data;
      const staff = await call('POST', '/api/staff/login', basic('usher', 'popcorn'));
      const completed = await call(
        'POST',
        `/api/staff/movie-orders/${key}/completion`,
        `Bearer ${staff.body.data.token}`,
        {
          bookingId: 'BK-1',
          transactionId: 'TX-1',
        },
      );
      assert.equal(completed.body.data?.status, 'COMPLETED', JSON.stringify(completed.body));
      const { eventType, data } = await partner.notificationOf(key, client.secret);
      assert.deepEqual([eventType, data.key, data.bookingId], ['NOTIFY_ORDER_COMPLETION', key, 'BK-1']);
    });

    test('notifies a client of a booking whose transaction commits, and the booking gets the result', async () => {
      const opened = await call('POST', '/api/bookings', asClient(), { seats: 'F7,F8', amount: 4200 });
      const { reference } = opened.body.data;
      const sold = await call('POST', `/api/bookings/${reference}/payment`, asClient(), { amount: 4200 });
      assert.equal(sold.body.data?.status, 'SOLD', JSON.stringify(sold.body));
      const { data } = await partner.notificationOf(reference, client.secret);
      assert.equal(data.totalAmount, 4200);
      await eventually('the booking gets the result', async () => {
        const { body } = await call('GET', `/api/bookings/${reference}`, asClient());
        return body.data.notified === 'SUCCESS' ? true : undefined;
      });
    });

    test('has no webhook of a booking whose transaction is rolled back', async () => {
      const opened = await call('POST', '/api/bookings', asClient(), { seats: 'F9', amount: 2100 });
      const { reference } = opened.body.data;
      assert.equal((await call('POST', `/api/bookings/${reference}/payment`, asClient(), { amount: 1 })).status, 409);
      const found = await call('GET', `/api/bookings/${reference}`, asClient());
      assert.deepEqual([found.body.data.status, found.body.data.notified], ['OPEN', null]);
      assert.deepEqual(await application.get(WebhookService, { strict: false }).find(reference), []);
      assert.equal(partner.count(reference), 0);
    });

    test('lets a client complete its order as the sandbox’s cinema operator', async () => {
      const amounts = { currencyCode: 'MYR', totalAmount: 1, bookingAmount: 1, payableAmount: 1 };
      const { body } = await call('POST', '/api/movie-orders', asClient(), amounts);
      const path = `/api/sandbox/movie-orders/${body.data.key}/complete`;
      const later = { bookingId: 'BK-2', transactionId: 'TX-2', delay: '1s' };
      assert.equal((await call('POST', path, asClient(), later)).status, 202);
      await partner.notificationOf(body.data.key, client.secret);
    });

    test('lists its own webhooks to a client', async () => {
      const { status, body } = await call('GET', '/api/webhooks', asClient());
      assert.equal(status, 200, JSON.stringify(body));
    });

    if (backend === 'mariadb-and-redis')
      test('has its own queue with the name of one of Usher’s', async () => {
        const { TicketPrinter, TICKETS_QUEUE } = await import('../src/tickets/tickets.module.js');
        const queue = application.get<Queue>(getQueueToken(TICKETS_QUEUE), { strict: false });
        await queue.add('print', { reference: 'Printed-1' });
        const { printed } = application.get(TicketPrinter, { strict: false });
        await eventually('the ticket is printed', () => (printed.length > 0 ? true : undefined));
        assert.deepEqual(printed, ['Printed-1']);
      });

    test('closes without an error, and closes its data source itself', async () => {
      const dataSource = application.get(DataSource);
      const destroy = dataSource.destroy.bind(dataSource);
      let calls = 0;
      dataSource.destroy = () => {
        calls += 1;
        return destroy();
      };
      await application.close();
      assert.equal(dataSource.isInitialized, false);
      assert.equal(calls, 1);
    });
  });
}
