import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { verifyNotification } from 'usher-receiver';
import { migrate } from '../../src/server/migrate.js';
import { loadConfig } from '../../src/server/settings/settings.js';
import { WEBHOOK_QUEUE } from '../../src/webhooks/queue/delivery.queue.js';
import type { Arrival as ObservedArrival } from '../chaos/arrivals.js';
import type { Fault } from '../chaos/faults.js';
import { JOURNAL } from '../chaos/journal.js';
import { RUN_SETTINGS } from '../chaos/limits.js';
import { broken } from '../chaos/report.js';
import { readTables, type Tables } from '../chaos/tables.js';
import { verdict } from '../chaos/verdict.js';
import { Api, basic, times } from '../fixtures/0.2.0/api.js';
import { BACKEND, type Settings } from '../support/backend.js';
import { eventually } from '../support/eventually.js';
import { type ServerProcess, startServer } from '../support/process.js';
import { type Arrival, type Behaviour, TestReceiver } from '../support/receiver.js';
import { releasedBuild } from '../support/released-build.js';
import { loadReleased, type ReleasedDatabase } from '../support/released-database.js';

/** Both versions have a worker and an api process on the database of 0.2.0, and half of the orders. */
type Version = 'released' | 'present';
const VERSIONS: Version[] = ['released', 'present'];
const ORDERS = 400;
const PROMOTED_EVERY_MS = 2_000;
/** The order at which the worker of this version is killed. */
const KILLED_AT: Record<Version, number> = { released: 130, present: 260 };

/** How the receiver answers the first attempts of an order; afterwards it answers 200. */
const PLANS: { answers: (number | 'hang' | 'reset')[] }[] = [
  { answers: [] },
  { answers: [] },
  { answers: [500] },
  { answers: ['hang'] },
  { answers: ['reset', 500] },
  { answers: [500, 500, 500, 500] },
  { answers: [500, 500, 500, 500, 500] },
  { answers: [] },
];

let released: ReleasedDatabase;
let receiver: TestReceiver;
let settings: Settings;
const workers = new Map<Version, ServerProcess>();
const apis = new Map<Version, ServerProcess>();
const ended: { version: Version; output: string }[] = [];
const faults: Fault[] = [];
const answered = new Map<Arrival, { status: number; at: number }>();
/** The number of each order, by its key; an order of the fixture has none. */
const numbers = new Map<string, number>();
const hopeless = new Set<string>();

const respond: Behaviour = (response, arrival, nth) => {
  const number = numbers.get(arrival.key);
  const plan = number === undefined ? [] : PLANS[number % PLANS.length]!.answers;
  const answer = hopeless.has(arrival.key) ? 500 : (plan[nth - 1] ?? 200);
  if (answer === 'hang') return;
  if (answer === 'reset') return void response.socket?.resetAndDestroy();
  answered.set(arrival, { status: answer, at: Date.now() });
  response.writeHead(answer).end();
};

const start = (version: Version, role: 'api' | 'worker'): Promise<ServerProcess> =>
  startServer({ ...settings, USHER_ROLE: role }, [], version === 'released' ? releasedBuild().main : undefined);

beforeAll(async () => {
  receiver = await TestReceiver.start('0.0.0.0');
  receiver.behaviour = respond;
  released = await loadReleased(Number(new URL(receiver.url).port));
  for (const { key, hopeless: isHopeless } of released.facts.cases.interrupted) if (isHopeless) hopeless.add(key);
  await migrate(loadConfig(released.settings));
  settings = { ...RUN_SETTINGS, DATABASE_POOL: '3', ...released.settings };
  for (const statement of JOURNAL[BACKEND === 'mariadb' ? 'mariadb' : 'postgres']) await released.query(statement);
  for (const version of VERSIONS) apis.set(version, await start(version, 'api'));
  for (const version of VERSIONS) workers.set(version, await start(version, 'worker'));
});
afterAll(async () => {
  await Promise.all([...workers.values(), ...apis.values()].map((process) => process.end()));
  receiver.close();
  await released.drop();
});

/** Kills the worker of this version in the middle of its work, and starts another one. */
async function replaceWorker(version: Version): Promise<void> {
  const worker = workers.get(version)!;
  const from = Date.now();
  const { stdout } = await worker.end('SIGKILL');
  ended.push({ version, output: stdout });
  workers.set(version, await start(version, 'worker'));
  faults.push({ name: `the worker ${version} was killed`, loss: 'process', from, until: Date.now() });
}

/** Creates an order at the api of one version, and completes it at that of the other or of the same. */
async function completeOrders(): Promise<{ key: string; completedBy: Version }[]> {
  const { shop } = released.facts.clients;
  const api = new Map(VERSIONS.map((version) => [version, new Api(apis.get(version)!.url)]));
  const replaced: Promise<void>[] = [];
  const completed = await times(ORDERS, async (number) => {
    for (const version of VERSIONS) if (number === KILLED_AT[version]) replaced.push(replaceWorker(version));
    const key = await api
      .get(VERSIONS[number % 2]!)!
      .order(shop, receiver.urlAt(`127.0.0.${1 + (number % PLANS.length)}`));
    numbers.set(key, number);
    const completedBy = VERSIONS[Math.floor(number / 2) % 2]!;
    await api.get(completedBy)!.complete(shop, key);
    return { key, completedBy };
  });
  await Promise.all(replaced);
  return completed;
}

const QUEUES = '/ops/queues/api/queues';

/** What an operator does on the page of the queues. */
async function onQueuesPage(version: Version, method: 'GET' | 'PUT', path: string): Promise<Response> {
  const { url } = apis.get(version)!;
  const authorization = basic({ id: settings.OPS_USER!, secret: settings.OPS_PASSWORD! });
  const headers = { authorization, origin: url, 'sec-fetch-site': 'same-origin' };
  const response = await fetch(url + path, { method, headers });
  if (response.status !== 200) throw new Error(`${path} was answered ${response.status}`);
  return response;
}

/** Waits until nothing is pending but what is due much later. Meanwhile every job runs also before its attempt is due. */
async function settled(late: string[]): Promise<void> {
  let promotedAt = 0;
  await eventually('only what is due much later is pending', async () => {
    if (Date.now() - promotedAt > PROMOTED_EVERY_MS) {
      promotedAt = Date.now();
      for (const version of VERSIONS) await onQueuesPage(version, 'PUT', `${QUEUES}/${WEBHOOK_QUEUE}/promote`);
    }
    const rows = await released.query(`SELECT reference_id FROM usher_webhook WHERE status = 'PENDING'`);
    return rows.every(({ reference_id }) => late.includes(String(reference_id)));
  });
}

/** Runs the jobs of everything that has ended once more. */
async function runEndedAgain(): Promise<void> {
  // On a busy machine a request for many jobs can fail in the middle.
  for (const state of ['completed', 'failed'])
    await eventually(`the ${state} jobs run once more`, () =>
      onQueuesPage('present', 'PUT', `${QUEUES}/${WEBHOOK_QUEUE}/retry/${state}`),
    );
  await eventually('they have run', async () => {
    const answer = await onQueuesPage('present', 'GET', `${QUEUES}?activeQueue=${WEBHOOK_QUEUE}&jobsPerPage=1`);
    const { queues } = (await answer.json()) as { queues: { name: string; counts: Record<string, number> }[] };
    const { active, waiting, prioritized, completed } = queues.find(({ name }) => name === WEBHOOK_QUEUE)!.counts;
    return completed! > 0 && [active, waiting, prioritized].every((count) => count === 0);
  });
}

/** The rows of these orders. */
function only(tables: Tables, keys: Set<string>): Tables {
  const webhooks = tables.webhooks.filter(({ referenceId }) => keys.has(referenceId));
  const ids = new Set(webhooks.map(({ id }) => id));
  return {
    orders: tables.orders.filter(({ key }) => keys.has(key)),
    webhooks,
    attempts: tables.attempts.filter(({ webhook }) => ids.has(webhook)),
    changes: tables.changes.filter(({ webhook }) => ids.has(webhook)),
    trace: tables.trace.filter(({ webhook }) => ids.has(webhook)),
  };
}

function observedArrival(arrival: Arrival): ObservedArrival {
  const { headers, key, at, rawBody } = arrival;
  const answer = answered.get(arrival);
  return {
    ...{ order: numbers.get(key) ?? -1, at, answer: String(answer?.status), key },
    webhook: String(headers['x-webhook-id']),
    attempt: Number(headers['x-webhook-attempt']),
    isSigned: isSigned(headers, rawBody),
    status: answer?.status ?? null,
    answeredAt: answer?.at ?? null,
  };
}

function isSigned(headers: Arrival['headers'], rawBody: Buffer): boolean {
  const { shop } = released.facts.clients;
  try {
    // Long after the arrival, so the age of the signature is not checked here.
    verifyNotification({ rawBody, headers, secret: shop.secret, now: Number(headers['x-timestamp']) * 1_000 });
    return true;
  } catch {
    return false;
  }
}

/** The ids of webhooks that the workers of a version have attempted, by their log. */
function attemptedBy(version: Version): Set<string> {
  const outputs = ended.filter((one) => one.version === version).map(({ output }) => output);
  const lines = [...outputs, workers.get(version)!.stdout].join('\n').split('\n');
  return new Set(lines.flatMap((line) => /"webhook":"(\w{22})".*"attempt":\d/.exec(line)?.[1] ?? []));
}

test('workers and apis of 0.2.0 and of now share a database and a queue: none lost, early, over five, after SUCCESS', async () => {
  const completed = await completeOrders();
  const { overdue, interrupted, cutOff, late, delivered } = released.facts.cases;
  const waiting = [...overdue, ...cutOff, ...interrupted.map(({ key }) => key)];
  const keys = new Set([...completed.map(({ key }) => key), ...waiting]);
  await settled(late);
  await runEndedAgain();
  const tables = await readTables(released.query);
  const arrivals = receiver.arrivals.filter(({ key }) => keys.has(key)).map(observedArrival);
  const lines = verdict(
    {
      tables: only(tables, keys),
      arrivals,
      acknowledged: completed.map(({ key }) => key),
      requestedAt: new Map(),
      unexpectedResponses: [],
      unexpectedEnds: [],
      guessed: [],
      rotated: [],
      faults,
    },
    0,
  );
  expect(broken(lines)).toEqual([]);
  const found = new Map(tables.webhooks.map((webhook) => [webhook.referenceId, webhook]));
  expect(completed.filter(({ key }) => !['SUCCESS', 'FAILED'].includes(found.get(key)!.status))).toEqual([]);
  const arrived = new Set(receiver.arrivals.map(({ key }) => key));
  expect([...delivered, ...late].filter((key) => arrived.has(key))).toEqual([]);
  for (const version of VERSIONS) {
    const attempted = attemptedBy(version);
    for (const completedBy of VERSIONS) {
      const shared = completed.filter(
        (one) => one.completedBy === completedBy && attempted.has(found.get(one.key)!.id),
      );
      expect(shared.length).toBeGreaterThan(ORDERS / 20);
    }
  }
});
