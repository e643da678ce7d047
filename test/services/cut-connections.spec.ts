import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.js';
import { OwnDatabase } from '../support/own-database.js';
import { usher } from '../support/process.js';
import { TestClient, TestUsher } from '../support/usher.js';

const CUTS = 15;
const REQUESTERS = 12;

let database: OwnDatabase;
let server: TestUsher;

beforeAll(async () => {
  database = await OwnDatabase.create();
  expect(await usher(database.settings, ['migrate'])).toMatchObject({ code: 0 });
  server = await TestUsher.start({ ...database.settings, TOKEN_RATE_LIMIT: 'off', USHER_ROLE: 'api' });
});
afterAll(async () => {
  await server.stop();
  await database.drop();
});

test('connections that are cut under load: requests are answered 503 or succeed, never 500', async () => {
  const client: TestClient = await server.client('http://127.0.0.1:8099/');
  const answers = { succeeded: 0, others: new Map<number, number>() };
  let isOver = false;
  const note = (status: number): void => {
    if (status < 300) answers.succeeded += 1;
    else answers.others.set(status, (answers.others.get(status) ?? 0) + 1);
  };
  const requesters = Array.from({ length: REQUESTERS }, async () => {
    while (!isOver) {
      note((await client.token()).status);
      const own = new TestClient(server, client.id, client.secret);
      note(
        await own.order().then(
          () => 201,
          (error: Error) => Number(/answered (\d+)/.exec(error.message)?.[1]),
        ),
      );
    }
  });
  for (let cut = 0; cut < CUTS; cut += 1) {
    const before = answers.succeeded;
    await eventually('requests succeed', () => answers.succeeded > before + REQUESTERS);
    await database.cutConnections();
  }
  isOver = true;
  await Promise.all(requesters);
  // 401: the token of an order was not issued, because its own request was answered 503.
  expect([...answers.others.keys()].filter((status) => status !== 503 && status !== 401)).toEqual([]);
});
