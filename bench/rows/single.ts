import { setTimeout as sleep } from 'node:timers/promises';
import { onPostgres, type BackendName, newBackend } from '../harness/backend.js';
import { commandsDuring } from '../harness/commands.js';
import { countCpu, CPU_OF_ALL, inTurn, median, quantile, type Subject } from '../harness/measure.js';
import { progress } from '../harness/progress.js';
import { Receiver } from '../harness/receiver.js';
import { Requests } from '../harness/requests.js';
import { RoundTrips } from '../harness/round-trips.js';
import { type Check, type Effort, type Figures, type Line, ratio, type Row } from '../harness/row.js';
import { reference, ServerProcess, type Settings } from '../harness/server-process.js';
import { CONCURRENCY, keyOf, type Notification, notificationOf } from '../references/bare-queue.js';
import { newId, orderKey } from '../../src/values/identifier.js';
import { Booth, ORDER } from '../usher/booth.js';
import { BenchUsher } from '../usher/usher.js';
import { waitUntil } from '../harness/wait.js';

const BACKENDS = ['MariaDB + Redis', 'Postgres + Redis', 'Postgres'] as const;
/** Calls a second. */
const RATE = 100;
const COUNTED = 50;
const [P50, P99, MB] = ['p50 ms', 'p99 ms', 'MB, api and worker'];
/** How many notifications a contender has sent when its memory is compared. */
const MEMORY_AFTER = 20_000;

/** Its limits: the ratios of Usher to the reference. */
const TARGETS = [
  [CPU_OF_ALL, 1.4],
  [P50, 1.5],
  [P99, 2],
  [MB, 1.3],
] as const;

export const single: Row = {
  name: 'single',
  title: `${RATE} calls a second that complete an order, beside an api that INSERTs and a worker that SELECTs, signs, POSTs and UPDATEs`,
  plotted: CPU_OF_ALL,
  async run(effort) {
    const lines: Line[] = [];
    const checks: Check[] = [];
    for (const backend of BACKENDS.filter((name) => effort.backends?.includes(name) ?? true)) {
      const measured = await onBackend(backend, effort);
      lines.push(...measured);
      for (const [column, most] of TARGETS)
        checks.push({
          what: `${backend}: ${column} against the reference`,
          value: ratio(measured, column, `Usher, ${backend}`, `reference, ${backend}`),
          target: { most },
        });
    }
    return { lines, checks };
  },
};

async function onBackend(backend: BackendName, effort: Effort): Promise<Line[]> {
  const receiver = await Receiver.start();
  const usher = await BenchUsher.prepare(backend, receiver.url());
  const booth = await Booth.of(usher, effort);
  const orders = await completions(booth, [booth.server, await usher.start('worker')]);
  const [first] = await Promise.all([receiver.next(), (await orders.prepare(1))[0]!.call()]);
  const notification = notificationOf(first, receiver.url());
  const ledger = await ledgerOn(await newBackend(backend), notification, effort);
  const most = effort.isQuick ? 500 : 3_000;
  for (const contender of [ledger, orders]) {
    progress(`${backend}: warming up`);
    await offered(contender, receiver, { count: most, rate: 5 * RATE });
  }
  const seconds = effort.isQuick ? 5 : 20;
  const subject = (name: string, contender: Contender): Subject => ({
    name: `${name}, ${backend}`,
    sample: () => offered(contender, receiver, { count: RATE * seconds, rate: RATE }),
  });
  const subjects: Subject[] = [{ ...subject('reference', ledger), isReference: true }, subject('Usher', orders)];
  const lines = await inTurn(subjects, effort.rounds, 0);
  const count = effort.isQuick ? most : MEMORY_AFTER - most - effort.rounds * RATE * seconds;
  for (const [index, contender] of [ledger, orders].entries())
    lines[index]!.figures[MB] = (await offered(contender, receiver, { count, rate: 5 * RATE }))[MB]!;
  // In a round of its own, because the counting proxy takes time.
  const counted = [
    await ledgerThroughProxy(backend, notification, effort),
    await usherThroughProxy(backend, receiver, effort),
  ];
  for (const [index, { figures }] of lines.entries()) Object.assign(figures, await counts(counted[index]!, receiver));
  return lines;
}

/** What is measured: its processes, and calls that lead to a notification each. */
interface Contender {
  processes: ServerProcess[];
  prepare: (count: number) => Promise<Call[]>;
}

interface Call {
  /** Of the order in the notification that follows. */
  key: string;
  call: () => Promise<unknown>;
}

async function completions(booth: Booth, processes: ServerProcess[]): Promise<Contender> {
  const headers = await booth.bearer();
  const prepare = async (count: number): Promise<Call[]> => {
    const calls: Call[] = [];
    const lane = async (): Promise<void> => {
      while (calls.length < count) {
        const call: Call = { key: '', call: () => booth.send(booth.completion(call.key)) };
        calls.push(call);
        ({ key: call.key = '' } = await booth.send({ path: '/movie-orders', headers, body: ORDER }));
      }
    };
    await Promise.all(Array.from({ length: 8 }, lane));
    return calls;
  };
  return { processes, prepare };
}

async function ledgerOn(settings: Settings, notification: Notification, effort: Effort): Promise<Contender> {
  const common = { ...settings, NOTIFICATION: JSON.stringify(notification), CONCURRENCY };
  const start = (role: string) => ServerProcess.start(reference('ledger.mjs'), { ...common, LEDGER_ROLE: role });
  const [api, worker] = [await start('api'), await start('worker')];
  const requests = new Requests(api, effort);
  const prepare = async (count: number): Promise<Call[]> =>
    Array.from({ length: count }, () => orderKey(newId('sandbox', Date.now()))).map((key) => ({
      key,
      call: () => requests.send({ path: '/complete', body: { key } }),
    }));
  return { processes: [api, worker], prepare };
}

/** Calls at a steady pace, whether or not earlier ones have been answered. */
async function offered(
  { processes, prepare }: Contender,
  receiver: Receiver,
  { count, rate }: { count: number; rate: number },
): Promise<Figures> {
  const calls = await prepare(count);
  const arrivedAt = new Map<string, number>();
  receiver.onReceipt = ({ body, at }) => void arrivedAt.set(keyOf(body), at);
  const cpu = async (): Promise<number> =>
    (await Promise.all(processes.map((one) => one.cpu()))).reduce((sum, one) => sum + one, 0);
  const used = await countCpu(cpu);
  const startedAt = performance.now();
  const dueAt = (index: number): number => startedAt + (index * 1_000) / rate;
  const answers: Promise<unknown>[] = [];
  for (const [index, { call }] of calls.entries()) {
    const ms = dueAt(index) - performance.now();
    if (ms > 0) await sleep(ms);
    answers.push(call());
  }
  await Promise.all(answers);
  await waitUntil('every notification has arrived', async () => calls.every(({ key }) => arrivedAt.has(key)));
  const usedEach = await used(count);
  const memory = (await Promise.all(processes.map((one) => one.used()))).reduce((sum, one) => sum + one.memory, 0);
  // From the moment at which a call was due, so that a call that had to wait counts fully.
  const times = calls.map(({ key }, index) => arrivedAt.get(key)! - dueAt(index));
  return {
    ...usedEach,
    [P50]: median(times),
    [P99]: quantile(times, 0.99),
    [MB]: memory / 2 ** 20,
  };
}

interface Counted {
  contender: Contender;
  trips: RoundTrips;
  databaseUrl: string;
}

async function usherThroughProxy(backend: BackendName, receiver: Receiver, effort: Effort): Promise<Counted> {
  const usher = await BenchUsher.prepare(backend, receiver.url());
  const { databaseUrl, trips } = await proxied(usher.settings);
  const booth = await Booth.of(usher, effort);
  return { contender: await completions(booth, [booth.server, await usher.start('worker')]), trips, databaseUrl };
}

async function ledgerThroughProxy(backend: BackendName, notification: Notification, effort: Effort): Promise<Counted> {
  const settings = await newBackend(backend);
  const { databaseUrl, trips } = await proxied(settings);
  return { contender: await ledgerOn(settings, notification, effort), trips, databaseUrl };
}

/** Puts a counting proxy into the settings. A queue in the database goes through it too. */
async function proxied(settings: Settings): Promise<{ databaseUrl: string; trips: RoundTrips }> {
  const databaseUrl = settings.DATABASE_URL!;
  const trips = await RoundTrips.to(databaseUrl);
  settings.DATABASE_URL = trips.through(databaseUrl);
  return { databaseUrl, trips };
}

/** Of one call at a time, so that none shares a statement with another. */
async function counts({ contender, trips, databaseUrl }: Counted, receiver: Receiver): Promise<Figures> {
  const calls = await contender.prepare(2 * COUNTED);
  const commits = () => (databaseUrl.startsWith('postgres') ? committed(databaseUrl) : Promise.resolve(trips.commits));
  const one = async ({ call }: Call): Promise<void> => {
    await Promise.all([receiver.next(), call()]);
    // Its outcome is recorded after the receipt.
    await sleep(30);
  };
  for (const call of calls.slice(COUNTED)) await one(call);
  const before = { trips: trips.count, commits: await commits() };
  const { redis } = await commandsDuring(async () => {
    for (const call of calls.slice(0, COUNTED)) await one(call);
  });
  const roundTrips = trips.count - before.trips;
  return {
    'round trips': roundTrips / COUNTED,
    commits: ((await commits()) - before.commits) / COUNTED,
    'Redis commands': redis / COUNTED,
  };
}

/** The server knows it only some time later. */
async function committed(databaseUrl: string): Promise<number> {
  await sleep(2_500);
  const { rows } = await onPostgres(
    'SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()',
    databaseUrl,
  );
  return Number((rows[0] as { xact_commit: string }).xact_commit);
}
