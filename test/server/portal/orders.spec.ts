import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { TestReceiver } from '../../support/receiver.js';
import { TestUsher } from '../../support/usher.js';
import { portalOf } from './portal-browser.js';

let usher: TestUsher;
let receiver: TestReceiver;
beforeAll(async () => {
  usher = await TestUsher.start();
  receiver = await TestReceiver.start();
});
afterAll(async () => {
  await usher.stop();
  await receiver.close();
});

test.each(['tomorrow', '2999-01-01'])(
  'the page of orders says in its form what is wrong with the day %s',
  async (day) => {
    const client = await usher.client(receiver.url);
    const key = await client.completedOrder();
    const { status, text } = await (await portalOf(usher, client.id)).get(`/portal/orders?day=${day}`);
    expect(status).toBe(400);
    expect(text).toMatch(new RegExp(`name="day"[^>]* value="${day}"[^>]* aria-invalid="true"`));
    expect(text).toContain('<span class="field-fault">');
    expect(text).toContain(key);
  },
);
