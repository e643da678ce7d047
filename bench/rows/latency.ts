import { setTimeout as sleep } from 'node:timers/promises';
import { newId, orderIdOf, orderKey } from '../../src/values/identifier.js';
import { keyOf, notificationOf, startBareQueue } from '../references/bare-queue.js';
import { Booth, ORDER } from '../usher/booth.js';
import { BulkRows } from '../usher/bulk-rows.js';
import { inTurn, median, quantile, type Subject } from '../harness/measure.js';
import { Receiver } from '../harness/receiver.js';
import { Requests } from '../harness/requests.js';
import { type Effort, type Figures, type Line, ratio, type Row } from '../harness/row.js';
import { reference, ServerProcess } from '../harness/server-process.js';
import { BenchUsher } from '../usher/usher.js';
import { waitUntil } from '../harness/wait.js';

const RATES = [10, 100, 500];
/** At a low rate a round is longer, so that a p99 is not the longest of a few. */
const LEAST_COMPLETIONS = 200;
const P99 = 'p99 ms';

const usherAt = (rate: number): string => `Usher, ${rate} a second`;
const bareAt = (rate: number): string => `bare BullMQ, ${rate} a second`;

export const latency: Row = {
  name: 'latency',
  title:
    'from a call that completes an order to its receipt, MariaDB + Redis, beside a server that only adds a job to BullMQ',
  plotted: P99,
  async run(effort) {
    const receiver = await Receiver.start();
    const usher = await BenchUsher.prepare('MariaDB + Redis', receiver.url());
    const [booth, _worker] = [await Booth.of(usher, effort), await usher.start('worker')];
    const orders = await Orders.prepare(booth);
    const [key] = await orders.create(1);
    const [first] = await Promise.all([receiver.next(), booth.send(booth.completion(key!))]);

    const bare = await startBareQueue(notificationOf(first, receiver.url()));
    const producer = new Requests(await ServerProcess.start(reference('bare-producer.mjs'), bare.settings), effort);
    const producing = async (count: number) =>
      Array.from({ length: count }, () => orderKey(newId('sandbox', Date.now()))).map((key) => ({
        key,
        call: () => producer.send({ path: '/complete', body: { key } }),
      }));
    const completing = async (count: number) =>
      (await orders.create(count)).map((key) => ({ key, call: () => booth.send(booth.completion(key)) }));

    const subjects = RATES.flatMap((rate): Subject[] => [
      { name: bareAt(rate), isReference: true, sample: () => offered(rate, producing, receiver, effort) },
      { name: usherAt(rate), sample: () => offered(rate, completing, receiver, effort) },
    ]);
    const lines = await inTurn(subjects, effort.rounds, effort.isQuick ? 1 : 2);
    return { lines, checks: [checkOf(lines)] };
  },
};

const checkOf = (lines: Line[]) => ({
  what: 'p99 at 100 a second against bare BullMQ',
  value: ratio(lines, P99, usherAt(100), bareAt(100)),
  target: { most: 2 },
});

interface Call {
  /** Of the order in the notification that follows. */
  key: string;
  call: () => Promise<unknown>;
}

/** A round: calls at a steady pace, whether or not earlier ones have been answered. */
async function offered(
  rate: number,
  prepare: (count: number) => Promise<Call[]>,
  receiver: Receiver,
  effort: Effort,
): Promise<Figures> {
  const calls = await prepare(Math.max(effort.isQuick ? 0 : LEAST_COMPLETIONS, rate * effort.seconds));
  const arrivedAt = new Map<string, number>();
  receiver.onReceipt = ({ body, at }) => void arrivedAt.set(keyOf(body), at);
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
  // From the moment at which a call was due, so that a call that had to wait counts fully.
  const times = calls.map(({ key }, index) => arrivedAt.get(key)! - dueAt(index));
  return { 'median ms': median(times), [P99]: quantile(times, 0.99) };
}

/** Pending orders: copies of one that was created over REST. */
class Orders {
  private constructor(
    private readonly rows: BulkRows,
    private readonly template: string,
  ) {}

  static async prepare(booth: Booth): Promise<Orders> {
    const { key = '' } = await booth.send({ path: '/movie-orders', headers: await booth.bearer(), body: ORDER });
    return new Orders(new BulkRows(booth.usher.settings.DATABASE_URL!), orderIdOf(key)!);
  }

  /** Returns their keys. */
  async create(count: number): Promise<string[]> {
    const ids = Array.from({ length: count }, () => newId('sandbox', Date.now()));
    await this.rows.copy(
      'usher_movie_order',
      'id',
      this.template,
      ids.map((id) => ({ id })),
    );
    return ids.map(orderKey);
  }
}
