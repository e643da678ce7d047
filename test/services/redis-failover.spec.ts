import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { type Backend, createBackend, type Settings } from '../support/backend.js';
import { eventually } from '../support/eventually.js';
import { failedStart, type ServerProcess, startServer, usherJson } from '../support/process.js';
import { late, TestReceiver } from '../support/receiver.js';
import { RedisPair, Sentinels } from '../support/redis-pair.js';
import { basic, COMPLETION, NEW_ORDER, SHORT_TIMES } from '../support/usher.js';

const ORDERS = 20;

let backend: Backend;
let pair: RedisPair;
let sentinels: Sentinels;
let receiver: TestReceiver;
let settings: Settings;
let running: ServerProcess[] = [];
let bearer = '';

beforeAll(async () => {
  [backend, receiver] = await Promise.all([createBackend(), TestReceiver.start()]);
});
beforeEach(async () => {
  pair = await RedisPair.start();
});
afterEach(async () => {
  await Promise.all(running.map((server) => server.end()));
  await pair.stop();
});
afterAll(async () => {
  receiver.close();
  await backend.drop();
});

/** An api and a worker process, and a client with a token. */
async function startProcesses(queueUrl: string): Promise<void> {
  settings = { ...SHORT_TIMES, ...backend.settings, QUEUE_URL: queueUrl };
  running = await Promise.all(['api', 'worker'].map((role) => startServer({ ...settings, USHER_ROLE: role })));
  const create = ['client', 'create', '--name', 'A client', '--notify-url', receiver.url];
  const client = await usherJson<Record<string, string>>(settings, create);
  const { access_token } = await post('/auth/token', basic(client.client_id!, client.client_secret!), {
    grant_type: 'client_credentials',
  });
  bearer = `Bearer ${access_token}`;
}

async function post(path: string, authorization: string, body: object): Promise<Record<string, string>> {
  const headers = { authorization, 'content-type': 'application/json' };
  const response = await fetch(running[0]!.url + path, { method: 'POST', headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${path} was answered ${response.status}`);
  return (await response.json()) as Record<string, string>;
}

const completeOrders = (): Promise<string[]> =>
  Promise.all(
    Array.from({ length: ORDERS }, async () => {
      const { key = '' } = await post('/movie-orders', bearer, NEW_ORDER);
      await post(`/sandbox/movie-orders/${key}/complete`, bearer, COMPLETION);
      return key;
    }),
  );

const isReady = async ({ url }: ServerProcess): Promise<boolean> => (await fetch(`${url}/health/ready`)).ok;

/** Every order arrives twice: the receiver answers 500 to the first attempt and 200 to the second. */
async function expectAllDeliveredOnce(keys: string[]): Promise<void> {
  const found = await eventually('every webhook has ended', async () => {
    const webhooks = await usherJson<{ referenceId: string; status: string; attemptCount: number }[]>(settings, [
      ...['webhook', 'list', '--limit', '1000'],
    ]);
    const ours = webhooks.filter(({ referenceId }) => keys.includes(referenceId));
    return ours.every(({ status }) => status !== 'PENDING') && ours;
  });
  expect(found.map(({ status, attemptCount }) => `${status} ${attemptCount}`)).toEqual(keys.map(() => 'SUCCESS 2'));
  expect(keys.map((key) => receiver.of(key).length)).toEqual(keys.map(() => 2));
}

/** Orders before, during and after a failover. All are retried, so their delayed jobs cross it too. */
async function failOverUnderLoad(failOver: () => Promise<void>): Promise<string[]> {
  receiver.behaviour = (response, arrival, nth) => late(100, nth === 1 ? 500 : 200)(response, arrival, nth);
  const before = await completeOrders();
  const [during] = await Promise.all([completeOrders(), failOver()]);
  return [...before, ...during, ...(await completeOrders())];
}

const linesAbout = (pattern: RegExp, { stdout }: ServerProcess): string[] =>
  stdout.split('\n').filter((line) => pattern.test(line));

describe('a failover by address, with the old primary still reachable as a replica', () => {
  test('loses and repeats no notification, and every process writes one line about it', async () => {
    await startProcesses(pair.url);
    await expectAllDeliveredOnce(await failOverUnderLoad(() => pair.failOver()));
    for (const server of running) {
      expect(await isReady(server)).toBe(true);
      expect(linesAbout(/READONLY|UNBLOCKED/, server)).toEqual([]);
      expect(linesAbout(/this Redis is a replica/, server)).toHaveLength(1);
    }
  });

  test('the limits count on the new primary, and metrics read from it', async () => {
    await startProcesses(pair.url);
    const { replica: next } = await pair.roles();
    await pair.failOver();
    const [api] = running as [ServerProcess];
    await eventually('failures are counted on the new primary', async () => {
      await post('/auth/token', basic('nobody', 'wrong'), {}).catch(() => undefined);
      const keys = (await next.command('KEYS', '*:limit:*')) as string[];
      return keys.length > 0;
    });
    await eventually('the queue is up', async () => {
      const metrics = await fetch(`${api.url}/ops/metrics`, { headers: { authorization: basic('ops', 'ops') } });
      return (await metrics.text()).includes('\nusher_queue_up 1\n');
    });
  });

  test('a worker is not ready while the address leads to a replica, and recovers by itself', async () => {
    await startProcesses(pair.url);
    const { primary, replica } = await pair.roles();
    await primary.command('REPLICAOF', '127.0.0.1', replica.port);
    const [api, worker] = running as [ServerProcess, ServerProcess];
    await eventually('the worker is not ready', async () => !(await isReady(worker)));
    expect(await isReady(api)).toBe(true);
    await primary.command('REPLICAOF', 'NO', 'ONE');
    await eventually('the worker is ready', () => isReady(worker));
    expect(linesAbout(/this Redis is a replica/, worker)).toHaveLength(1);
  });

  test('a process that starts at a replica says so', async () => {
    const { replica } = await pair.roles();
    const { stderr } = await failedStart({ ...backend.settings, QUEUE_URL: replica.url });
    const wanted = 'QUEUE_URL: this Redis is a replica and takes no jobs; use the address of its primary';
    expect(stderr).toBe(`usher: ${wanted}\n`);
  });
});

describe('with Sentinels', () => {
  beforeEach(async () => {
    sentinels = await Sentinels.watch(pair);
  });
  afterEach(() => sentinels.stop());

  test('a failover that an operator starts loses and repeats no notification', async () => {
    await startProcesses(sentinels.url);
    await expectAllDeliveredOnce(await failOverUnderLoad(() => sentinels.failOver()));
    for (const server of running) expect(await isReady(server)).toBe(true);
  });

  test('a primary that is killed is replaced, and no notification is lost or repeated', async () => {
    await startProcesses(sentinels.url);
    const { primary } = await pair.roles();
    const keys = await failOverUnderLoad(async () => {
      await primary.stop('SIGKILL');
      await sentinels.switchedFrom(primary.port);
    });
    await expectAllDeliveredOnce(keys);
    for (const server of running) expect(await isReady(server)).toBe(true);
  });

  test('a wrong group name, password or address is named at start-up', async () => {
    const start = async (url: string): Promise<string> =>
      (await failedStart({ ...backend.settings, QUEUE_URL: url })).stderr;
    const wrong = sentinels.url.replace('/cinema', '/theatre');
    expect(await start(wrong)).toContain('the Sentinels know no primary named theatre; correct QUEUE_URL');
    expect(await start(sentinels.url.replace('sesame2', 'hunter2'))).toContain('WRONGPASS');
    expect(await start(sentinels.url.replace(':sesame@', ':hunter2@'))).toContain('WRONGPASS');
    const closed = 'redis+sentinel://127.0.0.1:1,127.0.0.1:2/cinema';
    expect(await start(closed)).toBe(`usher: cannot open ${closed}: no answer; start it or correct QUEUE_URL\n`);
  });
});
