// npm run bench:isolation: what other receivers notice of one that never answers and has 10,000 notifications pending.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Cinema } from '../test/chaos/cinema.js';

const HANGING = 10_000;
const HOSTS = 10;
const PROBES = 3_000;
const EVERY_MS = 20;
const PATIENCE_MS = 60_000;

const arrivedAt = new Map<string, number>();
const quick = await Promise.all(Array.from({ length: HOSTS }, () => listen(true)));
const hanging = await listen(false);
const cinema = await Cinema.open({});

try {
  await probe(); // warms up
  const before = await probe();
  console.log(lineOf('without it', before));
  const pending = await cinema.createOrders(HANGING, () => hanging);
  await cinema.completeAll(pending);
  console.log(`${await cinema.count(`status = 'PENDING'`)} notifications are pending at a receiver that never answers`);
  const during = await probe();
  console.log(lineOf('beside it', during));
  console.log(`${await cinema.count(`status = 'PENDING'`)} are still pending`);
  await cinema.mariadb.query(`UPDATE usher_webhook SET status = 'FAILED', live_key = NULL WHERE status = 'PENDING'`);
  await cinema.redis.command('FLUSHALL');
  const after = await probe();
  console.log(lineOf('without it again', after));
  const [median, p99] = [0.5, 0.99].map((part) => quantile(during, part) / quantile([...before, ...after], part));
  console.log(`beside it / without it: median ${median!.toFixed(2)}, p99 ${p99!.toFixed(2)}`);
} finally {
  await cinema.close();
  process.exit();
}

/** Milliseconds from each call that completes an order to the arrival of its notification, at a steady pace. */
async function probe(): Promise<number[]> {
  const keys = await cinema.createOrders(PROBES, (n) => quick[n % HOSTS]!);
  const calledAt = new Map<string, number>();
  const completions: Promise<void>[] = [];
  for (const key of keys) {
    calledAt.set(key, performance.now());
    completions.push(cinema.complete(key));
    await sleep(EVERY_MS);
  }
  await Promise.all(completions);
  for (const until = performance.now() + PATIENCE_MS; keys.some((key) => !arrivedAt.has(key));) {
    if (performance.now() > until) throw new Error('a notification did not arrive');
    await sleep(EVERY_MS);
  }
  return keys.map((key) => arrivedAt.get(key)! - calledAt.get(key)!);
}

function quantile(times: number[], part: number): number {
  return times.toSorted((left, right) => left - right)[Math.floor(times.length * part)]!;
}

async function listen(answers: boolean): Promise<string> {
  const server = createServer((request, response) => {
    const at = performance.now();
    request.setEncoding('utf8');
    void request.toArray().then((parts) => {
      const { data } = JSON.parse(parts.join('')) as { data: { key: string } };
      arrivedAt.set(data.key, at);
      if (answers) response.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/notify`;
}

function lineOf(name: string, times: number[]): string {
  const [median, p99] = [0.5, 0.99].map((part) => quantile(times, part).toFixed(1));
  return `${name.padEnd(18)} median ${median} ms, p99 ${p99} ms`;
}
