import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import { WebhookModule } from 'usher';
import { RecordingWebhookModule, RecordingWebhooks } from 'usher/testing';
import { AppModule } from '../src/app.module.js';
import { BookingsService } from '../src/bookings/bookings.service.js';
import { start, stop, temporary } from './application.js';

let application: NestFastifyApplication;
let folder: string;
let bookings: BookingsService;
let webhooks: RecordingWebhooks;

before(async () => {
  // Without a worker, because nothing is delivered here.
  const setup = await temporary({ USHER_ROLE: 'api' });
  folder = setup.folder;
  application = await start(
    Test.createTestingModule({ imports: [AppModule.forRoot(setup.config)] })
      .overrideModule(WebhookModule)
      .useModule(RecordingWebhookModule),
  );
  bookings = application.get(BookingsService, { strict: false });
  webhooks = application.get(RecordingWebhooks, { strict: false });
});
after(() => stop(application, folder));

test('a sale requests one notification, and its final status is recorded', async () => {
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
