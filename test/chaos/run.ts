import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { growth, ORDERS_A_MINUTE, soak } from '../soak/soak.js';
import { Random } from '../support/random.js';
import { ReceiverProcess } from './arrivals.js';
import { addressOf, FIRST_HANGING_ORDER, HANGING_RECEIVER, hangingAddress, HOST_COUNT } from './behaviour.js';
import type { Observed } from './evidence.js';
import { Faults } from './faults.js';
import { Guessing } from './guessing.js';
import { LIMITS, LONGEST_LEASE_MS } from './limits.js';
import { CannotRun, type Options, readOptions } from './options.js';
import { Producers } from './producers.js';
import { broken, offendersOf, Progress, table } from './report.js';
import { type Setting, setUp } from './setup.js';
import { countPending, retryUntil, readTables } from './tables.js';
import { type Line, verdict } from './verdict.js';

const FAULT_EVERY_MS = { services: 4_500, embedded: 9_000 };
/** Twice the time of five attempts that were all cut off. */
const SETTLE_TIMEOUT_MS = 2 * LIMITS.maxAttempts * LONGEST_LEASE_MS;
const READ_TIMEOUT_MS = 30_000;
/** Much longer than the attempts of a hanging host take, with an eighth of the slots of one worker. */
const SETTLE_TIMEOUT_PER_HANGING_HOST_MS = 2 * LIMITS.maxAttempts * (LIMITS.timeoutMs / 32);

const progress = new Progress();

async function main(): Promise<number> {
  const options = readOptions(process.argv.slice(2));
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'usher-chaos-')));
  process.stdout.write(`${headline(options)}\n`);
  const { observed, lines } = await observe(options, folder);
  progress.end();
  return report([...verdict(observed, options.seed), ...lines], folder);
}

const headline = ({ seed, orders, faults, workers, apis, backend, redis, soakMinutes }: Options): string => {
  if (soakMinutes > 0) return `seed ${seed}: ${soakMinutes} minutes with ${ORDERS_A_MINUTE} orders and a fault in each`;
  return backend === 'embedded'
    ? `seed ${seed}: ${orders} orders and ${faults} faults, one process on the embedded database`
    : `seed ${seed}: ${orders} orders and ${faults} faults, ${apis} api and ${workers} worker processes on MariaDB and Redis${redis === 'sentinel' ? ' with Sentinels' : ''}`;
};

/** Runs orders and faults, and collects the log of the receivers and the tables. */
async function observe(options: Options, folder: string): Promise<{ observed: Observed; lines: Line[] }> {
  progress.show('starting');
  const setting = await setUp(options, folder);
  const { seed } = options;
  const receivers = await ReceiverProcess.start({
    seed,
    secret: setting.client.secret,
    hangingSecret: setting.hangingClient.secret,
    logFile: join(folder, 'arrivals.jsonl'),
  });
  const urlOf = ordinaryUrls(seed, receivers.ports);
  const loads = Array.from({ length: options.soakMinutes }, (_, minute) => {
    const first = minute * ORDERS_A_MINUTE;
    const work = { seed: seed + minute, backend: options.backend, orders: ORDERS_A_MINUTE };
    return new Producers(setting.fleet.urls, setting.client, { ...work, urlOf: (order) => urlOf(first + order) });
  });
  const isSoak = loads.length > 0;
  if (!isSoak) loads.push(new Producers(setting.fleet.urls, setting.client, { ...options, urlOf }));
  const hanging = new Producers(setting.fleet.urls, setting.hangingClient, {
    ...options,
    orders: isSoak ? 0 : options.hangingHosts,
    urlOf: hangingUrls(receivers.ports),
  });
  const guessing = new Guessing(setting.guessedClient);
  const faults = new Faults(setting.fleet, Random.of(seed, 'faults'), setting.services, guessing, setting.keys);
  let lines: Line[] = [];
  if (isSoak)
    lines = growth(await soak(folder, setting.fleet, faults, loads, (text) => process.stdout.write(`${text}\n`)));
  else await disturb(options, loads[0]!, hanging, faults);
  await settle(setting, options);
  const tables = await retryUntil(() => readTables(setting.query), READ_TIMEOUT_MS);
  await setting.fleet.retire();
  const arrivals = await receivers.finish();
  await setting.close();
  const all = [...loads, hanging];
  const observed = {
    tables,
    arrivals,
    acknowledged: all.flatMap(({ acknowledged }) => acknowledged),
    requestedAt: new Map(loads.flatMap(({ requestedAt }) => [...requestedAt])),
    unexpectedResponses: all.flatMap(({ unexpected }) => unexpected),
    unexpectedEnds: setting.fleet.unexpectedEnds,
    guessed: guessing.successes,
    rotated: setting.keys.successes,
    faults: faults.past,
  };
  return { observed, lines };
}

/** The Notify URLs of orders whose receivers answer in some way. */
const ordinaryUrls = (seed: number, ports: number[]) => (order: number) => {
  const host = Random.of(seed, 'host', order).between(0, HOST_COUNT - 1);
  return `http://${addressOf(host)}:${ports[host]}/orders/${order}`;
};

/** Every order has a host of its own, which never answers. */
const hangingUrls = (ports: number[]) => (order: number) =>
  `http://${hangingAddress(order)}:${ports[HANGING_RECEIVER]}/orders/${FIRST_HANGING_ORDER + order}`;

/** Runs orders and faults at the same time. The orders of the hanging hosts come in the first half. */
async function disturb(
  { faults, orders, backend }: Options,
  producers: Producers,
  hanging: Producers,
  chaos: Faults,
): Promise<void> {
  const timer = setInterval(() => {
    const last = chaos.past.at(-1)?.name ?? 'none yet';
    progress.show(
      `orders ${producers.acknowledged.length}/${orders}, faults ${chaos.past.length}/${faults}, the last: ${last}`,
    );
  }, 500);
  const durationMs = Math.max(1, faults) * FAULT_EVERY_MS[backend];
  await Promise.all([
    producers.run(durationMs),
    hanging.run(durationMs / 2),
    chaos.run(faults, FAULT_EVERY_MS[backend]),
  ]);
  clearInterval(timer);
}

/** After the faults: waits until all processes are up and every webhook has ended, or until the timeout. */
async function settle({ fleet, query }: Setting, { hangingHosts }: Options): Promise<void> {
  await fleet.waitUntilUp();
  const until = Date.now() + SETTLE_TIMEOUT_MS + hangingHosts * SETTLE_TIMEOUT_PER_HANGING_HOST_MS;
  for (;;) {
    const pending = await retryUntil(() => countPending(query), READ_TIMEOUT_MS);
    progress.show(`no more faults, ${pending} webhooks pending`);
    if (pending === 0 || Date.now() > until) break;
    await sleep(500);
  }
  // Waits for arrivals that would come too late, so that they are detected.
  await sleep(2 * LIMITS.retryEveryMs);
}

function report(lines: Line[], folder: string): number {
  process.stdout.write(`${table(lines)}\n\n`);
  const faults = broken(lines);
  if (faults.length === 0) {
    rmSync(folder, { recursive: true, force: true });
    process.stdout.write('All rules held.\n');
    return 0;
  }
  process.stdout.write(`${faults.map(offendersOf).join('\n')}\nLogs are in ${folder}\n`);
  return 1;
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.once(signal, () => {
    process.stderr.write(`chaos: ${signal}, ending\n`);
    process.exit(130);
  });
}

try {
  process.exit(await main());
} catch (error) {
  progress.end();
  process.stderr.write(`chaos: ${error instanceof CannotRun ? error.message : String((error as Error).stack)}\n`);
  process.exit(1);
}
