import 'reflect-metadata';
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ConfigModule, ConfigService } from '@nestjs/config';
import { Test, type TestingModule } from '@nestjs/testing';
import { getDataSourceToken, TypeOrmModule } from '@nestjs/typeorm';
import { UsherModule, WebhookModule } from 'nest-usher';
import { RecordingWebhookModule, RecordingWebhooks } from 'nest-usher/testing';
import { BookingsModule } from '../src/bookings/bookings.module.js';
import { BookingsService } from '../src/bookings/bookings.service.js';
import { dataSourceOptions } from '../src/database/data-source-options.js';
import { migrate } from '../src/migrate.js';
import { usherOptions } from '../src/usher-options.js';
import { prepare } from './environment.js';

let dropDatabase: () => Promise<void>;
let application: TestingModule;
let bookings: BookingsService;
let webhooks: RecordingWebhooks;

before(async () => {
  dropDatabase = await prepare('postgres', { USHER_DELIVER: 'false' });
  await migrate();
  application = await Test.createTestingModule({
    imports: [
      ConfigModule.forRoot({ isGlobal: true }),
      TypeOrmModule.forRootAsync({ inject: [ConfigService], useFactory: dataSourceOptions }),
      UsherModule.forRootAsync({ inject: [ConfigService, getDataSourceToken()], useFactory: usherOptions }),
      BookingsModule,
    ],
  })
    .overrideModule(WebhookModule)
    .useModule(RecordingWebhookModule)
    .compile();
  await application.init();
  bookings = application.get(BookingsService, { strict: false });
  webhooks = application.get(RecordingWebhooks, { strict: false });
});
after(async () => {
  await application?.close();
  await dropDatabase();
});

test('a sale requests one notification, and the booking gets its result', async () => {
  const { reference } = await bookings.open('client-1', 'F7,F8', 4200);
  await bookings.sell(reference, 'payment-1');
  const [request, ...others] = webhooks.requests;
  assert.equal(others.length, 0);
  assert.equal(request?.referenceId, reference);
  assert.equal(request?.data.totalAmount, 4200);
  assert.equal((await bookings.find('client-1', reference)).notified, 'PENDING');

  await webhooks.end(reference, 'FAILED');
  assert.equal((await bookings.find('client-1', reference)).notified, 'FAILED');
});

test('a payment of another amount rolls the notification back', async () => {
  const { reference } = await bookings.open('client-1', 'F9', 2100);
  await assert.rejects(bookings.sell(reference, 'payment-2', 1), /costs 2100/);
  assert.deepEqual(await webhooks.find(reference), []);
});
