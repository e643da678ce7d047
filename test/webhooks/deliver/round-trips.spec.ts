import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { isPostgres } from '../../../src/database/data-source.js';
import { eventually } from '../../support/eventually.js';
import { TestReceiver } from '../../support/receiver.js';
import { loggerOf } from '../../support/statements.js';
import { type TestClient, TestUsher } from '../../support/usher.js';

/** What tells the statements of a completion and its delivery from those of timers and pages. */
const OF_THE_ROAD =
  /START TRANSACTION|COMMIT|usher_client_secret|FROM .usher_movie_order. o |v\.clientId|(INTO|UPDATE) .usher_(webhook|delivery)/;

let usher: TestUsher;
let receiver: TestReceiver;
let client: TestClient;
/** As the driver gets them: one for each wait for the database. */
let sent: string[] = [];

beforeAll(async () => {
  receiver = await TestReceiver.start();
  // A retry run, which also reads these tables, comes between every 24 days alone.
  usher = await TestUsher.start({ WEBHOOK_RETRY_EVERY: '24d' });
  client = await usher.client(receiver.url);
  usher.dataSource.logger = loggerOf({ logQuery: (sql) => void (OF_THE_ROAD.test(sql) && sent.push(sql)) });
});
afterAll(async () => {
  await usher.stop();
  receiver.close();
});

test('an order that is completed and delivered alone waits four times for the database, and three times for a commit', async () => {
  // What a process remembers, such as the client's secret.
  await usher.attemptEnded(await client.completedOrder(), 1);
  const key = await client.order();
  sent = [];
  await client.complete(key);
  await eventually('the outcome is recorded', async () => sent.some((sql) => sql.includes('usher_delivery_figure')));
  expect(sent).toHaveLength(4);
  // On Postgres a claim is one statement, and so is an outcome. They need neither of these.
  const transactions = isPostgres(usher.dataSource) ? 1 : 3;
  expect(sent.filter((sql) => sql.startsWith('START TRANSACTION'))).toHaveLength(transactions);
  expect(sent.filter((sql) => sql.endsWith('; COMMIT'))).toHaveLength(transactions);
});
