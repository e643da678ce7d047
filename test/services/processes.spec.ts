import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type Backend, createBackend, type Settings } from '../support/backend.js';
import { eventually } from '../support/eventually.js';
import { OwnRedis } from '../support/own-redis.js';
import { type ServerProcess, startServer, usherJson } from '../support/process.js';
import { late, TestReceiver } from '../support/receiver.js';
import { basic, COMPLETION, NEW_ORDER, SHORT_TIMEOUT, SHORT_TIMES, TestUsher } from '../support/usher.js';

const ORDERS = 40;

let backend: Backend;
let redis: OwnRedis;
let settings: Settings;
let receiver: TestReceiver;
let bearer: string;
let running: ServerProcess[];

const start = (role: string): Promise<ServerProcess> => startServer({ ...settings, USHER_ROLE: role });

beforeAll(async () => {
  backend = await createBackend();
  redis = await OwnRedis.start();
  settings = { ...SHORT_TIMES, ...SHORT_TIMEOUT, ...backend.settings, QUEUE_URL: redis.url };
  receiver = await TestReceiver.start();
  running = await Promise.all(['api', 'api', 'worker', 'worker', 'worker'].map(start));
  const options = ['--name', 'A client', '--notify-url', receiver.url];
  const { client_id, client_secret } = await usherJson<Record<string, string>>(settings, [
    'client',
    'create',
    ...options,
  ]);
  const token = await post(running[0]!, '/auth/token', basic(client_id!, client_secret!), {
    grant_type: 'client_credentials',
  });
  bearer = `Bearer ${token.access_token}`;
});
afterAll(async () => {
  await Promise.all(running.map((process) => process.end()));
  receiver.close();
  await backend.drop();
  await redis.stop();
});

async function post({ url }: ServerProcess, path: string, authorization: string, body: object) {
  const headers = { authorization, 'content-type': 'application/json' };
  const response = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${path} was answered ${response.status}`);
  return (await response.json()) as Record<string, string>;
}

/** Sends a request to the first API process, and to the second if that fails. */
async function ask(path: string, body: object): Promise<Record<string, string>> {
  const [first, second] = running as [ServerProcess, ServerProcess];
  return post(first, path, bearer, body).catch(() => post(second, path, bearer, body));
}

async function completeOrders(): Promise<string[]> {
  return Promise.all(
    Array.from({ length: ORDERS / 2 }, async () => {
      const { key = '' } = await ask('/movie-orders', NEW_ORDER);
      await ask(`/sandbox/movie-orders/${key}/complete`, COMPLETION);
      return key;
    }),
  );
}

/** The totals of the last hour on the /ops page of this process. */
async function outcomes({ url }: ServerProcess): Promise<string[]> {
  const page = await fetch(`${url}/ops?range=1h`, { headers: { authorization: basic('ops', 'ops') } });
  return [...(await page.text()).matchAll(/<dt>(\w[^<]*)<\/dt>\s*<dd class="\w*">(?:<a [^>]*>)?(\d+)</g)].map(
    ([, name, count]) => `${name} ${count}`,
  );
}

test.each([
  ['an api', 0, 'api'],
  ['a worker', 2, 'worker'],
])('%s is killed: no notification is lost, and the other processes show the right totals', async (_, victim, role) => {
  receiver.behaviour = late(50);
  const before = receiver.arrivals.length;
  const keys = await completeOrders();
  await eventually('deliveries are under way', () => receiver.arrivals.length > before);
  await running[victim]!.end('SIGKILL');
  keys.push(...(await completeOrders()));
  const others = running.filter((_, index) => index !== victim);
  for (const key of keys) await receiver.waitFor(key);
  for (const other of others) {
    await eventually('its page shows that all were delivered', async () => {
      const shown = await outcomes(other);
      const all = new Set(receiver.arrivals.map(({ key }) => key)).size;
      return shown.includes(`Delivered ${all}`) && shown.includes('Ended FAILED 0');
    });
  }
  running[victim] = await start(role);
});

test('two environments share a Redis without touching each other’s jobs', async () => {
  const sandbox = await TestUsher.start({
    QUEUE_URL: redis.url,
    QUEUE_PREFIX: 'a',
    USHER_ROLE: 'api',
  });
  const other = await TestUsher.start({ QUEUE_URL: redis.url, QUEUE_PREFIX: 'b' });
  const key = await (await sandbox.client(receiver.url)).completedOrder();
  const { id } = await sandbox.webhook(key, 'PENDING');
  await eventually('its job exists', () => sandbox.queue.getJob(id));
  const delivered = await (await other.client(receiver.url)).completedOrder();
  await other.webhook(delivered, 'SUCCESS');
  expect(await other.queue.getJob(id)).toBeUndefined();
  await other.queue.obliterate({ force: true });
  expect(await sandbox.queue.getWaitingCount()).toBe(1);
  expect(await sandbox.webhook(key, 'PENDING')).toMatchObject({ attemptCount: 0 });
  await Promise.all([sandbox.stop(), other.stop()]);
});
