import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import type { QueryRunner } from 'typeorm';
import { isPostgres } from '../../../../src/database/data-source.js';
import { formOf, OperatorBrowser } from '../../../support/operator-browser.js';
import { type TestClient, TestUsher } from '../../../support/usher.js';

let usher: TestUsher;
let browser: OperatorBrowser;
let client: TestClient;
let runner: QueryRunner;

beforeAll(async () => {
  usher = await TestUsher.start();
  browser = await OperatorBrowser.of(usher, 'disabled');
  client = await usher.client();
  runner = usher.dataSource.createQueryRunner();
});
afterAll(async () => {
  await runner.release();
  await usher.stop();
});

/** Runs `work` while nobody can read the sessions. */
async function whileSessionsAreLocked(work: () => Promise<void>): Promise<void> {
  const isOnPostgres = isPostgres(usher.dataSource);
  await runner.query(isOnPostgres ? 'BEGIN' : 'LOCK TABLES usher_operator_session WRITE');
  try {
    if (isOnPostgres) await runner.query('LOCK TABLE usher_operator_session IN ACCESS EXCLUSIVE MODE');
    await work();
  } finally {
    await runner.query(isOnPostgres ? 'ROLLBACK' : 'UNLOCK TABLES');
  }
}

test('while a session cannot be checked, nothing is changed with it', async () => {
  const page = `/ops/clients/${client.id}`;
  const form = formOf((await browser.get(page)).text, `${page}/rename`)!;
  const fields = new URLSearchParams({ form, name: 'Renamed' }).toString();
  const headers = { origin: usher.running.url, 'content-type': 'application/x-www-form-urlencoded' };
  await whileSessionsAreLocked(async () => {
    const answer = await browser.send('POST', `${page}/rename`, { ...headers, accept: 'text/html' }, fields);
    expect(answer.status).toBe(503);
  });
  expect((await usher.clients.get(client.id)).name).toBe('A test client');
});

test('while a session cannot be checked, it still shows pages for a minute', async () => {
  expect((await browser.get('/ops/password')).status).toBe(200);
  await whileSessionsAreLocked(async () => {
    expect((await browser.get('/ops/password')).status).toBe(200);
    const now = performance.now.bind(performance);
    const clock = jest.spyOn(performance, 'now').mockImplementation(() => now() + 60_000);
    try {
      expect((await browser.get('/ops/password')).status).toBe(503);
    } finally {
      clock.mockRestore();
    }
  });
});

test('while sessions cannot be checked, one that was signed out shows no page', async () => {
  const ended = await OperatorBrowser.of(usher, 'signed-out');
  expect((await ended.get('/ops/password')).status).toBe(200);
  const cookies = [...ended.cookies];
  expect((await ended.post('/ops/sign-out', {}, { page: '/ops/password' })).status).toBe(303);
  for (const [name, value] of cookies) ended.cookies.set(name, value);
  await whileSessionsAreLocked(async () => expect((await ended.get('/ops/password')).status).toBe(503));
});
