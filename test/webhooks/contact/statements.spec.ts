import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { ContactMessages } from '../../../src/webhooks/contact/contact-messages.js';
import { TestReceiver } from '../../support/receiver.js';
import { statementsOf } from '../../support/statements.js';
import { TestUsher } from '../../support/usher.js';

let usher: TestUsher;
let receiver: TestReceiver;
beforeAll(async () => {
  usher = await TestUsher.start({ WEBHOOK_RETRY_EVERY: '24h' });
  receiver = await TestReceiver.start();
});
afterAll(async () => {
  await usher.stop();
  receiver.close();
});

test('a delivery to a client whose Notify URLs are healthy makes no statement of its own, and an idle retry run one for all', async () => {
  const client = await usher.client(receiver.url);
  const delivery = async (): Promise<void> => {
    await usher.webhook(await client.completedOrder(), 'SUCCESS');
  };
  await delivery();
  const about = (await statementsOf(usher.dataSource, delivery)).filter(({ sql }) =>
    /failing_host|contact_state/.test(sql),
  );
  expect(about).toMatchObject([{ sql: expect.stringContaining('FOR UPDATE SKIP LOCKED') }]);
  const messages = usher.running.app.get(ContactMessages, { strict: false });
  const looking = await statementsOf(usher.dataSource, () => messages.look());
  // The process says at any moment that it is alive.
  expect(looking.filter(({ sql }) => !sql.includes('usher_process'))).toHaveLength(1);
});
