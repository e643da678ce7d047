import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { isPostgres } from '../../src/database/data-source.js';
import { WebhookResends } from '../../src/webhooks/undelivered/webhook-resends.js';
import { TestReceiver } from '../support/receiver.js';
import { TestUsher } from '../support/usher.js';
import { insertFailed, references, resendsOf } from '../webhooks/undelivered/support.js';

let usher: TestUsher;
let receiver: TestReceiver;
beforeAll(async () => {
  [usher, receiver] = await Promise.all([TestUsher.start(), TestReceiver.start()]);
});
afterAll(async () => {
  receiver.close();
  await usher.stop();
});

test('selected notifications of one millisecond are each sent again once where the database sorts by language', async () => {
  // As in a database that was made with en_US.UTF-8, the default of the image of Postgres.
  if (isPostgres(usher.dataSource))
    await usher.dataSource.query('ALTER TABLE usher_webhook ALTER COLUMN id TYPE varchar(22) COLLATE "en-x-icu"');
  const client = await usher.client(receiver.url);
  const ids = await insertFailed(client, references('selected', 120));
  const resends = usher.running.app.get(WebhookResends, { strict: false });
  const { resent, refused } = await resends.get(await resends.resendChosen(ids));
  expect({ resent, refused }).toEqual({ resent: 120, refused: 0 });
  expect(await resendsOf(usher, client)).toEqual(new Map(ids.map((id) => [id, 1])));
});
