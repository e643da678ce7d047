import type { Queue } from 'bullmq';
import { CONCURRENCY, type Notification, notificationOf, startBareQueue } from '../references/bare-queue.js';
import { Booth } from '../usher/booth.js';
import { commandsDuring } from '../harness/commands.js';
import { countCpu, CPU, inTurn, RATE, type Subject } from '../harness/measure.js';
import { drained, PendingNotifications } from '../usher/pending-notifications.js';
import { progress } from '../harness/progress.js';
import { Receiver } from '../harness/receiver.js';
import { Requests } from '../harness/requests.js';
import { type Effort, type Line, ratio, relativeTo, type Row } from '../harness/row.js';
import { reference, ServerProcess } from '../harness/server-process.js';
import { BenchUsher } from '../usher/usher.js';

const USHER = 'Usher';
const BARE = 'bare BullMQ worker';
const LOOP = 'POST loop';
/** Jobs are added in pages, so that Redis serves others in between. */
const PAGE = 1_000;

export const deliver: Row = {
  name: 'deliver',
  title:
    'recorded completions to receipts at a loopback receiver, MariaDB + Redis, beside a BullMQ worker that only POSTs',
  plotted: CPU,
  async run(effort) {
    const count = effort.isQuick ? 500 : 4_000;
    const receiver = await Receiver.start();
    const one = await usherSubject(USHER, 1, receiver, count, effort);
    const two = await usherSubject(`${USHER}, two workers`, 2, receiver, count, effort);
    const bare = await bareSubject(one.notification, receiver, count);
    const subjects = [await loopSubject(one.notification, receiver, count, effort), bare, one, two];
    const lines = await inTurn(subjects, effort.rounds, effort.warmUps);
    for (const { name, sample } of [bare, one]) {
      progress(`${name}: counting statements and commands`);
      const { sql, redis } = await commandsDuring(sample);
      const { figures } = lines.find(({ subject }) => subject === name)!;
      Object.assign(figures, { 'SQL statements each': sql / count, 'Redis commands each': redis / count });
    }
    return { lines: relativeTo(lines, CPU, BARE, `CPU, ${BARE} = 1`), checks: checksOf(lines) };
  },
};

const checksOf = (lines: Line[]) => [
  {
    what: `rate against the ${BARE}`,
    value: ratio(lines, RATE, USHER, BARE),
    target: { least: 0.7, stretch: 0.8 },
  },
  {
    what: `CPU against the ${BARE}`,
    value: ratio(lines, CPU, USHER, BARE),
    target: { most: 1.4, stretch: 1.25 },
  },
];

/** Usher's workers on a database of their own, and one notification as they send it. */
async function usherSubject(name: string, workerCount: number, receiver: Receiver, count: number, effort: Effort) {
  const usher = await BenchUsher.prepare('MariaDB + Redis', receiver.url());
  const booth = await Booth.of(usher, effort);
  const pending = await PendingNotifications.prepare(booth);
  await booth.server.stop();
  const workers = await Promise.all(Array.from({ length: workerCount }, () => usher.start('worker')));
  const first = receiver.next();
  await pending.add(1);
  await pending.queue.resume();
  const notification = notificationOf(await first, receiver.url());
  const subject = queueSubject(name, pending.queue, workers, receiver, count, () => pending.add(count));
  return { ...subject, notification };
}

async function bareSubject(notification: Notification, receiver: Receiver, count: number): Promise<Subject> {
  const { queue, worker } = await startBareQueue(notification);
  const kept = { removeOnComplete: { count: 1_000 }, removeOnFail: { count: 1_000 } };
  const { key } = notification;
  const addJobs = async (): Promise<void> => {
    for (let left = count; left > 0; left -= PAGE)
      await queue.addBulk(
        Array.from({ length: Math.min(PAGE, left) }, () => ({ name: 'deliver', data: { key }, opts: kept })),
      );
  };
  return { ...queueSubject(BARE, queue, [worker], receiver, count, addJobs), isReference: true };
}

/** A round: jobs are added to the paused queue, then it resumes; it ends with the last receipt. */
export function queueSubject(
  name: string,
  queue: Queue,
  workers: ServerProcess[],
  receiver: Receiver,
  count: number,
  addJobs: () => Promise<void>,
): Subject {
  const cpu = async (): Promise<number> => {
    const used = await Promise.all(workers.map((worker) => worker.cpu()));
    return used.reduce((sum, one) => sum + one, 0);
  };
  const sample = async () => {
    await queue.pause();
    await addJobs();
    const used = await countCpu(cpu);
    const arrival = receiver.arrivalOf(count);
    const resumedAt = performance.now();
    await queue.resume();
    const seconds = ((await arrival) - resumedAt) / 1_000;
    // What follows the last receipt, such as recording it, also counts as processor time.
    await drained(queue);
    return { [RATE]: count / seconds, ...(await used(count)) };
  };
  return { name, sample };
}

async function loopSubject(
  notification: Notification,
  receiver: Receiver,
  count: number,
  effort: Effort,
): Promise<Subject> {
  const settings = { NOTIFICATION: JSON.stringify(notification), CONCURRENCY };
  const loop = new Requests(await ServerProcess.start(reference('post-loop.mjs'), settings), effort);
  const sample = async () => {
    const used = await countCpu(loop.server.cpu);
    const startedAt = performance.now();
    receiver.onReceipt = () => undefined;
    await loop.send({ method: 'GET', path: `/${count}` });
    const seconds = (performance.now() - startedAt) / 1_000;
    return { [RATE]: count / seconds, ...(await used(count)) };
  };
  return { name: LOOP, isReference: true, sample };
}
