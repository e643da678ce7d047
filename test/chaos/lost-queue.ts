// npm run nightly -- --only chaos-lost-queue: FLUSHALL while 10,000 retries are delayed. Each must be sent once, and none too early.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Cinema } from './cinema.js';

const ORDERS = 10_000;
const MIN_INTERVAL_MS = 10_000;
const TIMES = { WEBHOOK_TIMEOUT: '5s', WEBHOOK_RETRY_EVERY: '1m', WEBHOOK_RETRY_MIN_INTERVAL: '10s' };
const TIMEOUT_MS = 480_000;

/** Arrival times of each order's notifications, by path. The first is answered 500. */
const arrivals = new Map<string, number[]>();
const server = createServer((request, response) => {
  const times = arrivals.get(request.url!) ?? [];
  arrivals.set(request.url!, [...times, Date.now()]);
  request.resume();
  response.writeHead(times.length === 0 ? 500 : 200).end();
});
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
const { port } = server.address() as AddressInfo;

const cinema = await Cinema.open(TIMES);
try {
  const keys = await cinema.createOrders(ORDERS, (n) => `http://127.0.0.1:${port}/orders/${n}`);
  await cinema.completeAll(keys);
  await until('every first attempt has failed', async () => (await cinema.count('attempts = 0')) === 0);
  const delayed = await cinema.count(`status = 'PENDING'`);
  await cinema.redis.command('FLUSHALL');
  console.log(`FLUSHALL with ${delayed} of ${ORDERS} retries delayed`);
  await until('every webhook ends', async () => (await cinema.count(`status = 'PENDING'`)) === 0);
  const succeeded = await cinema.count(`status = 'SUCCESS'`);
  process.exitCode = report(succeeded) ? 0 : 1;
} finally {
  await cinema.close();
  server.closeAllConnections();
  server.close();
}

function report(succeeded: number): boolean {
  const times = [...arrivals.values()];
  const rows = {
    'not delivered': ORDERS - succeeded,
    'sent only once': times.filter(({ length }) => length < 2).length + ORDERS - times.length,
    'sent again after the 200': times.filter(({ length }) => length > 2).length,
    'sent too early': times.filter(([first = 0, second = Infinity]) => second - first < MIN_INTERVAL_MS).length,
  };
  for (const [name, count] of Object.entries(rows)) console.log(`${name.padEnd(26)} ${count}   (must be 0)`);
  return Object.values(rows).every((count) => count === 0);
}

async function until(what: string, check: () => Promise<boolean>): Promise<void> {
  for (const giveUpAt = Date.now() + TIMEOUT_MS; !(await check());) {
    if (Date.now() > giveUpAt) throw new Error(`timed out: ${what}`);
    await sleep(500);
  }
}
