import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { AuditLog } from '../../../src/audit/audit.module.js';
import { Webhook, WebhookAttempt } from '../../../src/webhooks/webhook.entity.js';
import { eventually } from '../../support/eventually.js';
import { answer, type Behaviour, late, TestReceiver } from '../../support/receiver.js';
import { recordRoutes, type Recorded } from '../../support/routes.js';
import { basic, SHORT_TIMES, type TestClient, TestUsher } from '../../support/usher.js';

const OPERATOR = { authorization: basic('ops', 'ops') };
const API = '/ops/queues/api/queues';
const MIN_INTERVAL_MS = Number.parseInt(SHORT_TIMES.WEBHOOK_RETRY_MIN_INTERVAL!, 10);
const IN_A_YEAR = Date.now() + 365 * 86_400_000;
const FINISHED = ['completed', 'failed'];
const STATES = [...FINISHED, 'delayed', 'active', 'waiting', 'prioritized'];

let usher: TestUsher;
let receiver: TestReceiver;
let client: TestClient;
let routes: Recorded[];
/** How the receiver answers each order, by its key. */
const behaviours = new Map<string, Behaviour>();

beforeAll(async () => {
  routes = recordRoutes(jest, FastifyAdapter);
  usher = await TestUsher.start();
  receiver = await TestReceiver.start();
  receiver.behaviour = (response, arrival, nth) => (behaviours.get(arrival.key) ?? answer(200))(response, arrival, nth);
  client = await usher.client(receiver.url);
});
afterAll(async () => {
  await usher.stop();
  receiver.close();
});

interface Subject {
  key: string;
  id: string;
}

async function notified(behaviour: Behaviour): Promise<Subject> {
  const key = await client.order();
  behaviours.set(key, behaviour);
  await client.complete(key);
  await receiver.waitFor(key);
  const [webhook] = await usher.webhooks.find(key);
  return { key, id: webhook!.id };
}

/** Two webhooks: one with a running attempt, and one that waits for its retry. */
async function pending(): Promise<Subject[]> {
  return Promise.all([notified(late(300)), notified(answer(500))]);
}

interface Press {
  path: string;
  body?: object;
}

/** The requests of each button, by route: buttons of one job, then of a whole queue. */
const OF_A_JOB: Record<string, (subject: Subject) => Press[]> = {
  'PUT /:jobId/retry': () => [{ path: '/retry' }],
  'PUT /:jobId/promote': () => [{ path: '/promote' }],
  'PUT /:jobId/clean': () => [{ path: '/clean' }],
  'PATCH /:jobId/update-data': ({ id }) => [
    { path: '/update-data', body: { jobData: null } },
    { path: '/update-data', body: { jobData: { webhook: 'another', of: id } } },
  ],
  'PATCH /:jobId/delay': () => [{ path: '/delay', body: { runAt: IN_A_YEAR } }],
  'PATCH /:jobId/priority': () => [{ path: '/priority', body: { priority: 2_097_151 } }],
};

const OF_A_QUEUE: Record<string, () => Press[]> = {
  'PUT /retry/:queueStatus': () => FINISHED.map((state) => ({ path: `/retry/${state}` })),
  'PUT /promote': () => [{ path: '/promote' }],
  'PUT /clean/:queueStatus': () => STATES.map((state) => ({ path: `/clean/${state}` })),
  'PUT /pause': () => [{ path: '/pause' }, { path: '/resume' }],
  'PUT /resume': () => [{ path: '/resume' }],
  'PUT /empty': () => [{ path: '/pause' }, { path: '/empty' }, { path: '/resume' }],
};

/** The requests that are refused: they limit the queue, add jobs, or undo a pause unseen. */
const REFUSED: Record<string, Press[]> = {
  'POST /add': [
    { path: '/add', body: { name: 'deliver', data: { webhook: 'w', host: 'h' }, options: {} } },
    { path: '/add', body: { name: 'retry-run', data: {}, options: { jobId: 'run-99999999', delay: 1e11 } } },
  ],
  'PUT /obliterate': [{ path: '/obliterate', body: { force: true } }],
  'PUT /concurrency': [1, '1', [0]].map((concurrency) => ({ path: '/concurrency', body: { concurrency } })),
  'PUT /rate-limit': [
    { path: '/rate-limit', body: { max: 1, duration: 1e11 } },
    { path: '/rate-limit', body: { duration: 1 } },
  ],
  'PUT /job-schedulers/:schedulerId/remove': [{ path: '/job-schedulers/none/remove' }],
  'PUT /job-schedulers/:schedulerId/run': [{ path: '/job-schedulers/none/run' }],
  'PATCH /job-schedulers/:schedulerId': [{ path: '/job-schedulers/none', body: { every: 1000 } }],
  'PUT /:jobId/remove-unprocessed-children': [{ path: '/none/remove-unprocessed-children' }],
};

/** The requests that only lift a limit that another program has set. */
const LIFTING: Press[] = [
  { path: '/concurrency', body: { concurrency: 0 } },
  { path: '/rate-limit', body: { max: null } },
  { path: '/rate-limit/release' },
];

async function press(method: string, path: string, body?: object): Promise<void> {
  const { status } = await usher.request(method, `${API}${path}`, OPERATOR, body ?? {});
  // Bull Board answers an impossible action with various statuses. Here only the request matters.
  expect([200, 204, 400, 403, 404, 409, 500]).toContain(status);
}

async function pressAll(subjects: Subject[]): Promise<void> {
  for (const queue of ['usher-webhook', 'usher-retry-run']) {
    for (const [route, presses] of Object.entries(OF_A_QUEUE)) {
      await pending();
      for (const { path, body } of presses()) await press(route.split(' ')[0]!, `/${queue}${path}`, body);
    }
  }
  for (const path of ['/pause', '/resume']) await press('PUT', path);
  // These come last, because no other button can undo their changes.
  for (const [route, presses] of Object.entries(OF_A_JOB)) {
    const all = [...subjects, ...(await pending())];
    for (const subject of all)
      for (const { path, body } of presses(subject))
        await press(route.split(' ')[0]!, `/usher-webhook/${subject.id}${path}`, body);
  }
}

test('this test knows every button', () => {
  const prefix = `${API}/:queueName`;
  const buttons = routes.filter(({ method, url }) => url.startsWith(API) && !['GET', 'HEAD'].includes(method));
  const found = buttons.map(({ method, url }) => `${method} ${url.replace(prefix, '').replace(API, '')}`);
  const lifting = ['PUT /rate-limit/release'];
  const known = [OF_A_JOB, OF_A_QUEUE, REFUSED].flatMap((buttons) => Object.keys(buttons)).concat(lifting);
  expect([...new Set(found)].sort()).toEqual([...new Set(known)].sort());
});

test('whatever buttons are pressed, every webhook ends in time and none is sent too often', async () => {
  const failed = await notified(answer(500));
  const delivered = await notified(answer(200));
  await usher.webhook(failed.key, 'FAILED');
  await pressAll([failed, delivered]);
  for (const key of behaviours.keys()) if (key !== failed.key) behaviours.set(key, answer(200));
  const { manager } = usher.dataSource;
  await eventually('every webhook has ended', async () => !(await manager.existsBy(Webhook, { status: 'PENDING' })));
  const rows = await manager.find(Webhook);
  expect(rows).toHaveLength(behaviours.size);
  for (const { id, referenceId, status, attempts } of rows) {
    const arrivals = receiver.of(referenceId);
    const facts = { referenceId, status, attempts, arrivals: arrivals.length };
    expect(arrivals.length).toBeLessThanOrEqual(5);
    expect(facts).toMatchObject({ attempts: arrivals.length });
    expect(await manager.countBy(WebhookAttempt, { webhookId: id })).toBe(attempts);
    expect(facts).toMatchObject({ status: referenceId === failed.key ? 'FAILED' : status });
    arrivals.slice(1).forEach(({ at }, n) => expect(at - arrivals[n]!.at).toBeGreaterThanOrEqual(MIN_INTERVAL_MS));
  }
  expect(receiver.of(delivered.key)).toHaveLength(1);
  expect(receiver.of(failed.key)).toHaveLength(5);
});

test('requests that can stop deliveries unnoticed are refused, and a limit that another program has set can be lifted', async () => {
  const put = async (method: string, { path, body }: Press): Promise<number> =>
    (await usher.request(method, `${API}/usher-webhook${path}`, OPERATOR, body ?? {})).status;
  for (const [route, presses] of Object.entries(REFUSED))
    for (const one of presses)
      expect({ ...one, status: await put(route.split(' ')[0]!, one) }).toEqual({ ...one, status: 403 });
  expect([await usher.queue.getGlobalConcurrency(), await usher.queue.getGlobalRateLimit()]).toEqual([null, null]);

  await usher.queue.setGlobalConcurrency(1);
  await usher.queue.setGlobalRateLimit(1, 1_000_000_000);
  for (const one of LIFTING) expect({ ...one, status: await put('PUT', one) }).toEqual({ ...one, status: 200 });
  expect([await usher.queue.getGlobalConcurrency(), await usher.queue.getGlobalRateLimit()]).toEqual([null, null]);
  await usher.webhook(await client.completedOrder(), 'SUCCESS');
});

test('each change of a queue has an audit event with the operator, before it is made', async () => {
  const audit = usher.running.app.get(AuditLog, { strict: false });
  const last = async () => (await audit.list({ limit: 1 }))[0];
  const operator = { actor: 'operator:ops', address: '127.0.0.1' };
  for (const action of ['pause', 'resume'] as const) {
    await press('PUT', `/usher-retry-run/${action}`);
    expect(await last()).toMatchObject({ ...operator, action: `queue.${action}d`, subject: 'queue:usher-retry-run' });
    await press('PUT', `/${action}`);
    expect(await last()).toMatchObject({ ...operator, action: `queue.${action}d`, subject: 'queue:all' });
  }
  await press('PUT', '/usher-webhook/clean/completed');
  const detail = { operation: 'clean', queueStatus: 'completed' };
  expect(await last()).toMatchObject({ ...operator, action: 'queue.changed', subject: 'queue:usher-webhook', detail });
  await press('PUT', '/usher-webhook/no%00job/retry');
  expect(await last()).toMatchObject({ detail: { operation: 'retry', jobId: 'no\0job' } });
  const { id } = (await last())!;
  await press('PUT', '/no-queue/pause');
  await press('POST', '/usher-webhook/add', { name: 'refused' });
  expect((await last())!.id).toBe(id);
});

test('a job shows every attempt, failed ones in its log and the last one as its result, without payload or response', async () => {
  const secretive: Behaviour = (response, _, nth) =>
    void response.writeHead(nth === 1 ? 500 : 200).end('ANSWER-CONFIDENTIAL');
  const { key, id } = await notified(secretive);
  await usher.webhook(key, 'SUCCESS');
  const job = await eventually('the job has its result', async () => {
    const { body } = await usher.request('GET', `${API}/usher-webhook/${id}`, OPERATOR);
    const { job } = body as { job: { returnValue?: string; data: object } };
    return job.returnValue ? job : null;
  });
  expect(job.returnValue).toMatch(/^20\S+Z attempt 2: delivered: 200 in \d+ ms$/);
  expect(job.data).toMatchObject({ webhook: id, reference: key, client: client.id });
  const logs = await usher.request('GET', `${API}/usher-webhook/${id}/logs`, OPERATOR);
  expect(logs.body).toEqual([expect.stringMatching(/^20\S+Z attempt 1: the receiver answered 500 after \d+ ms$/)]);
  expect(JSON.stringify([job, logs.body])).not.toMatch(/CONFIDENTIAL|BK-1|TX-1|QR-1/);
});
