import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import { ClientsModule, ClientsService } from 'usher';
import { type Notification, verifyNotification, type VerifyOptions } from 'usher/receiver';
import { issueAccessToken } from 'usher/testing';
import { AppModule } from '../src/app.module.js';
import type { Booking } from '../src/bookings/booking.entity.js';
import { start, stop, temporary } from './application.js';

let application: NestFastifyApplication;
let folder: string;
let partner: Server;
let secret: string;
let token: string;
const arrivals = new EventEmitter();

before(async () => {
  const setup = await temporary();
  folder = setup.folder;
  application = await start(Test.createTestingModule({ imports: [AppModule.forRoot(setup.config), ClientsModule] }));
  partner = await startPartner();
  const notifyUrl = `http://127.0.0.1:${(partner.address() as AddressInfo).port}/notify`;
  const created = await application.get(ClientsService, { strict: false }).create('Partner', notifyUrl);
  secret = created.secret;
  token = await issueAccessToken(application, created.client.id);
});
after(async () => {
  partner.close();
  await stop(application, folder);
});

type Arrival = Pick<VerifyOptions, 'rawBody' | 'headers'>;

/** The client's own server: answers 200 at once and emits each arrival. */
async function startPartner(): Promise<Server> {
  const server = createServer((request, response) => {
    void request.toArray().then((chunks: Buffer[]) => {
      response.end();
      arrivals.emit('notification', { rawBody: Buffer.concat(chunks), headers: request.headers } satisfies Arrival);
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

async function call(method: string, path: string, body?: object): Promise<Booking> {
  const response = await fetch((await application.getUrl()) + path, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(method === 'POST' && { body: JSON.stringify(body ?? {}) }),
  });
  assert.ok(response.ok, `${method} ${path} was answered ${response.status}`);
  return (await response.json()) as Booking;
}

async function nextNotification(): Promise<Notification> {
  const [arrival] = (await once(arrivals, 'notification', { signal: AbortSignal.timeout(30_000) })) as [Arrival];
  return verifyNotification({ ...arrival, secret });
}

async function untilNotified(reference: string): Promise<Booking> {
  for (let tries = 0; tries < 300; tries += 1) {
    const booking = await call('GET', `/bookings/${reference}`);
    if (booking.notified !== 'PENDING') return booking;
    await pause(100);
  }
  throw new Error('the end of the notification was never recorded');
}

test('a request without a token is refused', async () => {
  const { status, headers } = await fetch(`${await application.getUrl()}/bookings/any`);
  assert.equal(status, 401);
  assert.match(headers.get('www-authenticate') ?? '', /^Bearer /);
});

test('a client books, pays and is notified, and the booking shows it', async () => {
  const { reference } = await call('POST', '/bookings', { seats: 'F7,F8', amount: 4200 });
  const arriving = nextNotification();
  const sold = await call('POST', `/bookings/${reference}/payment`);
  assert.equal(sold.status, 'SOLD');
  const { eventType, data } = await arriving;
  assert.equal(eventType, 'NOTIFY_ORDER_COMPLETION');
  assert.equal(data.key, reference);
  assert.equal(data.totalAmount, 4200);
  assert.equal((await untilNotified(reference)).notified, 'SUCCESS');
});
