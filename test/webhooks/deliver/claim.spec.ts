import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { getDataSourceToken } from '@nestjs/typeorm';
import type { DataSource } from 'typeorm';
import { USHER_OPTIONS } from '../../../src/usher.options.js';
import { ClaimStore } from '../../../src/webhooks/deliver/claim.store.js';
import { DeliveryEvents } from '../../../src/webhooks/deliver/delivery-events.js';
import { TestUsher } from '../../support/usher.js';

let usher: TestUsher;

beforeAll(async () => {
  usher = await TestUsher.start({ USHER_ROLE: 'api' });
});
afterAll(async () => {
  await usher.stop();
});

test('only one of two concurrent claims of the same webhook succeeds', async () => {
  const client = await usher.client('http://127.0.0.1:4000/notify');
  const [webhook] = await usher.webhooks.find(await client.completedOrder());
  const { app } = usher.running;
  const store = new ClaimStore(
    app.get<DataSource>(getDataSourceToken('usher')),
    app.get(USHER_OPTIONS),
    app.get(DeliveryEvents, { strict: false }),
  );
  const answers = await store.claim([webhook!.id, webhook!.id]);
  expect(answers.map(({ kind }) => kind)).toEqual(['claimed', 'deferred']);
});
