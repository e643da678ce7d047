import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import { FastifyAdapter } from '@nestjs/platform-fastify';
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
  'PUT /:jobId/remove-unprocessed-children': () => [{ path: '/remove-unprocessed-children' }],
  'PATCH /:jobId/update-data': ({ id }) => [
    { path: '/update-data', body: { jobData: null } },
    { path: '/update-data', body: { jobData: { webhook: 'another', of: id } } },
  ],
  'PATCH /:jobId/delay': () => [{ path: '/delay', body: { runAt: IN_A_YEAR } }],
  'PATCH /:jobId/priority': () => [{ path: '/priority', body: { priority: 2_097_151 } }],
};

const OF_A_QUEUE: Record<string, (subjects: Subject[]) => Press[]> = {
  'PUT /retry/:queueStatus': () => FINISHED.map((state) => ({ path: `/retry/${state}` })),
  'PUT /promote': () => [{ path: '/promote' }],
  'PUT /clean/:queueStatus': () => STATES.map((state) => ({ path: `/clean/${state}` })),
  'POST /add': (subjects) =>
    subjects.flatMap(({ id }) => [
      { path: '/add', body: { name: 'deliver', data: { webhook: id, host: 'h' }, options: {} } },
      { path: '/add', body: { name: 'deliver', data: null, options: { jobId: id, delay: 1e11 } } },
      { path: '/add', body: { name: 'anything' } },
    ]),
  'PUT /pause': () => [{ path: '/pause' }, { path: '/resume' }],
  'PUT /resume': () => [{ path: '/resume' }],
  'PUT /empty': () => [{ path: '/pause' }, { path: '/empty' }, { path: '/resume' }],
  'PUT /obliterate': () => [{ path: '/pause' }, { path: '/obliterate', body: { force: true } }, { path: '/resume' }],
  'PUT /concurrency': () => [1, 0].map((concurrency) => ({ path: '/concurrency', body: { concurrency } })),
  'PUT /rate-limit': () => [
    { path: '/rate-limit', body: { max: 1, duration: 100 } },
    { path: '/rate-limit', body: { max: null } },
  ],
  'PUT /rate-limit/release': () => [{ path: '/rate-limit/release' }],
  'PUT /job-schedulers/:schedulerId/remove': () => [{ path: '/job-schedulers/none/remove' }],
  'PUT /job-schedulers/:schedulerId/run': () => [{ path: '/job-schedulers/none/run' }],
  'PATCH /job-schedulers/:schedulerId': () => [{ path: '/job-schedulers/none', body: { every: 1000 } }],
};

async function press(method: string, path: string, body?: object): Promise<void> {
  const { status } = await usher.request(method, `${API}${path}`, OPERATOR, body ?? {});
  // Bull Board answers an impossible action with various statuses. Here only the request matters.
  expect([200, 204, 400, 404, 409, 500]).toContain(status);
}

async function pressAll(subjects: Subject[]): Promise<void> {
  for (const queue of ['usher-webhook', 'usher-retry-run']) {
    for (const [route, presses] of Object.entries(OF_A_QUEUE)) {
      const all = [...subjects, ...(await pending())];
      for (const { path, body } of presses(all)) await press(route.split(' ')[0]!, `/${queue}${path}`, body);
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
  const known = [...Object.keys(OF_A_JOB), ...Object.keys(OF_A_QUEUE)];
  expect([...new Set(found)].sort()).toEqual([...new Set(known)].sort());
});

test('whichever buttons are pressed, every webhook ends in time and none is sent too often', async () => {
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

test('the log of a job lists every attempt, without payload or response', async () => {
  const secretive: Behaviour = (response, _, nth) =>
    void response.writeHead(nth === 1 ? 500 : 200).end('ANSWER-CONFIDENTIAL');
  const { key, id } = await notified(secretive);
  await usher.webhook(key, 'SUCCESS');
  const logs = await eventually('both attempts are in the log', async () => {
    const answered = await usher.request('GET', `${API}/usher-webhook/${id}/logs`, OPERATOR);
    return (answered.body as unknown as string[]).length === 2 ? (answered.body as unknown as string[]) : null;
  });
  expect(logs[0]).toMatch(/^20\S+Z attempt 1: the receiver answered 500 after \d+ ms$/);
  expect(logs[1]).toMatch(/^20\S+Z attempt 2: delivered: 200 in \d+ ms$/);
  const job = await usher.request('GET', `${API}/usher-webhook/${id}`, OPERATOR);
  expect(job.body).toMatchObject({ job: { data: { webhook: id, reference: key, client: client.id } } });
  expect(JSON.stringify(job.body) + logs.join()).not.toMatch(/CONFIDENTIAL|BK-1|TX-1|QR-1/);
});
