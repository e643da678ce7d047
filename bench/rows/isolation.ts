import { setTimeout as sleep } from 'node:timers/promises';
import { Cinema } from '../../test/chaos/cinema.js';
import { keyOf } from '../references/bare-queue.js';
import { atEnd } from '../harness/cleanup.js';
import { median, quantile } from '../harness/measure.js';
import { progress } from '../harness/progress.js';
import { Receiver } from '../harness/receiver.js';
import type { Effort, Line, Row } from '../harness/row.js';
import { waitUntil } from '../harness/wait.js';

const HOSTS = 10;
const EVERY_MS = 20;
const P99 = 'p99 ms';
const SIZES = { full: { hanging: 10_000, probes: 1_500 }, quick: { hanging: 1_000, probes: 150 } };

/** Where the notifications of the other client go. */
const CROWDS = ['one host', 'a host each'] as const;
type Crowd = (typeof CROWDS)[number];

export const isolation: Row = {
  name: 'isolation',
  title:
    'from completion to receipt at 50 a second, while receivers of another client never answer 10,000 notifications',
  plotted: P99,
  async run(effort) {
    const [quick, hanging] = [await Receiver.start(), await Receiver.start('never')];
    const lines: Line[] = [];
    for (const crowd of CROWDS) lines.push(...(await besides(crowd, quick, hanging, effort)));
    return { lines, checks: [] };
  },
};

async function besides(crowd: Crowd, quick: Receiver, hanging: Receiver, { isQuick }: Effort): Promise<Line[]> {
  const sizes = isQuick ? SIZES.quick : SIZES.full;
  const cinema = await Cinema.open({});
  atEnd(() => cinema.close());
  const client = await cinema.anotherClient();
  const hang = async (): Promise<void> =>
    cinema.completeAll(await cinema.createOrders(sizes.hanging, (n) => hanging.url(hostOf(crowd, n)), client));
  const lines: Line[] = [];
  const probe = async (name: string): Promise<void> => {
    progress(`${crowd}: ${name}`);
    const times = await timesOf(cinema, quick, sizes.probes);
    const figures = { 'median ms': median(times), [P99]: quantile(times, 0.99), 'longest ms': Math.max(...times) };
    lines.push({ subject: `${crowd}: ${name}`, isReference: name.startsWith('without'), figures });
  };
  await timesOf(cinema, quick, sizes.probes);
  await probe('without them');
  await hang();
  await probe('beside them');
  await cinema.clear();
  await cinema.replaceWorkerAfter(hang);
  await probe('after a restart');
  await cinema.clear();
  await probe('without them again');
  return lines;
}

const hostOf = (crowd: Crowd, n: number): string =>
  crowd === 'a host each' ? `127.1.${n >> 8}.${n & 255}` : '127.1.0.0';

/** Milliseconds from each call that completes an order to the arrival of its notification, at a steady pace. */
async function timesOf(cinema: Cinema, receiver: Receiver, probes: number): Promise<number[]> {
  const keys = await cinema.createOrders(probes, (n) => receiver.url(`127.0.0.${2 + (n % HOSTS)}`));
  const arrivedAt = new Map<string, number>();
  receiver.onReceipt = ({ body, at }) => void arrivedAt.set(keyOf(body), at);
  const calledAt = new Map<string, number>();
  const completions: Promise<void>[] = [];
  for (const key of keys) {
    calledAt.set(key, performance.now());
    completions.push(cinema.complete(key));
    await sleep(EVERY_MS);
  }
  await Promise.all(completions);
  await waitUntil('every notification has arrived', async () => keys.every((key) => arrivedAt.has(key)));
  return keys.map((key) => arrivedAt.get(key)! - calledAt.get(key)!);
}
