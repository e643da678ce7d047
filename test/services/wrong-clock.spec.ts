import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type Backend, createBackend } from '../support/backend.js';
import { eventually } from '../support/eventually.js';
import { type ServerProcess, startServer, usherJson } from '../support/process.js';
import { answer, TestReceiver } from '../support/receiver.js';
import { basic, COMPLETION, NEW_ORDER, SHORT_TIMES } from '../support/usher.js';

const AHEAD = ['--import', 'data:text/javascript,const now=Date.now;Date.now=()=>now()+7200000;'];
/** Receivers accept a timestamp that differs from their own time by so much. */
const ACCEPTED_S = 300;

let backend: Backend;
let server: ServerProcess;
let receiver: TestReceiver;
let bearer: string;

beforeAll(async () => {
  backend = await createBackend();
  receiver = await TestReceiver.start();
  server = await startServer({ ...SHORT_TIMES, ...backend.settings }, AHEAD);
  const { client_id = '', client_secret = '' } = await usherJson<Record<string, string>>(backend.settings, [
    ...['client', 'create', '--name', 'A client', '--notify-url', receiver.url],
  ]);
  const { access_token } = await post('/auth/token', basic(client_id, client_secret), {
    grant_type: 'client_credentials',
  });
  bearer = `Bearer ${String(access_token)}`;
});
afterAll(async () => {
  await server.end();
  receiver.close();
  await backend.drop();
});

async function post(path: string, authorization: string, body: object): Promise<Record<string, unknown>> {
  const headers = { authorization, 'content-type': 'application/json' };
  const response = await fetch(server.url + path, { method: 'POST', headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${path} was answered ${response.status}`);
  return (await response.json()) as Record<string, unknown>;
}

test('a process two hours off signs with the time of the database, and its metric says the difference', async () => {
  receiver.behaviour = (response, arrival, nth) => answer(nth === 1 ? 500 : 200)(response, arrival, nth);
  const { key } = await post('/movie-orders', bearer, NEW_ORDER);
  await post(`/sandbox/movie-orders/${String(key)}/complete`, bearer, COMPLETION);
  await receiver.waitFor(String(key), 2);
  await post('/webhooks/test', bearer, {});
  await post('/sandbox/certifications', bearer, {});
  const times = receiver.arrivals.map(({ at, headers }) => Number(headers['x-timestamp']) - at / 1_000);
  // The two attempts, the test, and the six of the certification, of which one is an hour old.
  expect(times.filter((ahead) => Math.abs(ahead) < ACCEPTED_S)).toHaveLength(8);
  expect(times).toHaveLength(9);

  const metrics = `${server.url}/ops/metrics`;
  const [, ahead] = await eventually('the metric is there', async () => {
    const text = await (await fetch(metrics, { headers: { authorization: basic('ops', 'ops') } })).text();
    return /^usher_clock_ahead_seconds (\S+)$/m.exec(text);
  });
  expect(Number(ahead)).toBeCloseTo(7_200, -1);
});

test('notifications that a client reads itself carry the time of the database', async () => {
  receiver.behaviour = answer(500);
  const { key } = await post('/movie-orders', bearer, NEW_ORDER);
  await post(`/sandbox/movie-orders/${String(key)}/complete`, bearer, COMPLETION);
  const response = await fetch(`${server.url}/webhooks/undelivered`, { headers: { authorization: bearer } });
  const { data } = (await response.json()) as { data: { headers: Record<string, string> }[] };
  expect(Math.abs(Number(data[0]?.headers['X-Timestamp']) - Date.now() / 1_000)).toBeLessThan(ACCEPTED_S);
});
