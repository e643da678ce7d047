import { execFileSync, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Arrival } from '../chaos/arrivals.js';
import { groupBy } from '../chaos/evidence.js';
import { bareEnvironment } from '../chaos/fleet.js';
import { JOURNAL, unknownSteps } from '../chaos/journal.js';
import { LIMITS, RUN_SETTINGS } from '../chaos/limits.js';
import { waitFor } from '../chaos/processes.js';
import { Producers } from '../chaos/producers.js';
import { countPending, type Query, readTables } from '../chaos/tables.js';
import { addressOf, at, connectHosts, cut, disconnectHosts, heal, type Host, lose, slow } from './hosts.js';
import { type Database, startAt, startServers } from './servers.js';

const WORKERS: Host[] = ['worker-1', 'worker-2'];
const both = (one: Host, others: Host[]): void => {
  cut(one, others);
  for (const other of others) cut(other, [one]);
};

interface Fault {
  name: string;
  inject: () => void;
  isShort?: boolean;
  needsQueue?: boolean;
}

const FAULTS: Fault[] = [
  { name: 'none', inject: () => undefined, isShort: true },
  { name: 'one worker and the database, both ways', inject: () => both('worker-1', ['database']), isShort: true },
  { name: 'database → one worker', inject: () => cut('database', ['worker-1']), isShort: true },
  { name: 'one worker → database', inject: () => cut('worker-1', ['database']) },
  { name: 'all and the database, both ways', inject: () => both('database', ['api', ...WORKERS]) },
  { name: 'api and the database, both ways', inject: () => both('api', ['database']) },
  { name: 'workers and the queue, both ways', inject: () => both('queue', WORKERS), needsQueue: true, isShort: true },
  { name: 'api → queue', inject: () => cut('api', ['queue']), needsQueue: true },
  { name: 'receiver → workers', inject: () => cut('receiver', WORKERS), isShort: true },
  { name: '20 % of the packets to the database lost', inject: () => lose('database', 20) },
  { name: '20 % of the packets to a worker lost', inject: () => lose('worker-1', 20) },
  { name: 'slow link of the database', inject: () => slow('database') },
];

const isShort = process.argv.includes('--short');
const [ORDERS, FAULT_MS, SETTLE_MS] = isShort ? [30, 8_000, 60_000] : [60, 20_000, 240_000];

async function runOn(kind: Database): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'usher-partitions-'));
  chmodSync(folder, 0o755);
  const { query, settings: servers } = await startServers(kind, folder);
  const settings = {
    ...{ ...RUN_SETTINGS, ...servers, HOST: '0.0.0.0', PORT: '3000', WEBHOOK_ALLOW_PRIVATE_HOSTS: 'true' },
    USHER_MASTER_KEYS: `run:${randomBytes(32).toString('base64')}`,
    ...{ OPS_USER: 'ops', OPS_PASSWORD: randomBytes(12).toString('hex') },
  };
  const env = { ...bareEnvironment(), ...settings };
  const usher = (...args: string[]): string =>
    execFileSync(process.execPath, ['dist/cli.js', ...args], { env, encoding: 'utf8', stdio: 'pipe' });
  usher('migrate');
  const created = JSON.parse(usher('client', 'create', '--name', 'Partitions', '--json')) as Record<string, string>;
  for (const statement of JOURNAL[kind]) await query(statement);
  startAt('receiver', folder, [process.execPath, resolve('test/partitions/receiver.mjs')]);
  for (const host of ['api', ...WORKERS] as Host[])
    startAt(host, folder, [process.execPath, 'dist/main.js'], { ...env, USHER_ROLE: host.split('-')[0] });
  const url = `http://${addressOf('api')}:3000`;
  await waitFor('the api answers', 120_000, async () => (await fetch(`${url}/health`)).status < 500);
  const client = { id: created.client_id!, secret: created.client_secret! };
  let faults = 0;
  for (const fault of FAULTS.filter((one) => (!isShort || one.isShort) && !(one.needsQueue && kind === 'postgres')))
    faults += await underFault(fault, { kind, query, url, client, log: join(folder, 'receiver.log') });
  if (faults === 0) rmSync(folder, { recursive: true, force: true });
  else console.log(`Logs are in ${folder}`);
  return faults;
}

interface Setting {
  kind: Database;
  query: Query;
  url: string;
  client: { id: string; secret: string };
  log: string;
}

let next = 0;

/** Completes orders while the fault lasts, waits until all their notifications have ended, and prints one line. */
async function underFault({ name, inject }: Fault, { kind, query, url, client, log }: Setting): Promise<number> {
  const first = next;
  next += ORDERS;
  const urlOf = (order: number): string => `http://${addressOf('receiver')}:8080/${first + order}`;
  const producers = new Producers([url], client, { seed: first, backend: 'services', orders: ORDERS, urlOf });
  inject();
  const done = producers.run(FAULT_MS);
  await sleep(FAULT_MS);
  heal();
  await done;
  const until = Date.now() + SETTLE_MS;
  while (Date.now() < until && (await countPending(query).catch(() => 1)) > 0) await sleep(500);
  const { webhooks, trace, attempts } = await readTables(query);
  const mine = new Map(
    webhooks.filter((one) => producers.requestedAt.has(one.referenceId)).map((one) => [one.id, one]),
  );
  const of = <T extends { webhook: string }>(list: T[]): T[] => list.filter(({ webhook }) => mine.has(webhook));
  const arrivals = of(
    readFileSync(log, 'utf8')
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Arrival),
  );
  const grouped = groupBy(arrivals, ({ webhook }) => webhook);
  const delays: number[] = [];
  const count = { lost: ORDERS - mine.size, early: 0, overFive: 0, repeated: 0 };
  for (const [id, { status, referenceId }] of mine) {
    const got = grouped.get(id) ?? [];
    const accepted = got.find((arrival) => arrival.status === 200);
    if (status === 'PENDING' || !accepted) count.lost += 1;
    else delays.push(accepted.at - producers.requestedAt.get(referenceId)!);
    const succeededAt = trace.find(({ webhook, row }) => webhook === id && row?.after.status === 'SUCCESS')?.at;
    if (got.length > LIMITS.maxAttempts) count.overFive += 1;
    if (got.some((one, index) => index > 0 && one.at - got[index - 1]!.at < LIMITS.minIntervalMs)) count.early += 1;
    if (got.some((one) => one.at > (succeededAt ?? Infinity))) count.repeated += 1;
  }
  const unknown = unknownSteps(of(trace), arrivals);
  const sorted = delays.sort((left, right) => left - right);
  const second = (part: number): string => ((sorted[Math.floor((sorted.length - 1) * part)] ?? 0) / 1_000).toFixed(1);
  const { lost, early, overFive, repeated } = count;
  const cells = [kind, name, ORDERS, of(attempts).length, lost, early, overFive, repeated, unknown.length];
  console.log(`| ${[...cells, second(0.5), second(1)].join(' | ')} |`);
  for (const text of [...producers.unexpected, ...unknown.slice(0, 3)]) console.log(text);
  return lost + early + overFive + repeated + unknown.length;
}

const HEADER = [
  '| database | fault | notifications | attempts | lost | early | over five | repeated after SUCCESS | unknown steps | median s | longest s |',
  '| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |',
];

if (process.env.USHER_PARTITIONS) {
  // At the host `control`, whose clock and files are those of the machine.
  const [, , kind] = process.argv;
  process.exit((await runOn(kind as Database)) === 0 ? 0 : 1);
}
const missing = ['ip', 'nft', 'tc', 'setpriv'].filter((name) => spawnSync('which', [name]).status !== 0);
if (userInfo().uid !== 0 || missing.length > 0) {
  console.error(
    `partitions: run it as root, with the Debian packages iproute2 and nftables${missing.length > 0 ? `; not found: ${missing.join(', ')}` : ''}`,
  );
  process.exit(1);
}
process.on('exit', disconnectHosts);
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
console.log(HEADER.join('\n'));
for (const kind of process.argv.find((one) => one === 'mariadb' || one === 'postgres')?.split(' ') ?? [
  'mariadb',
  'postgres',
]) {
  connectHosts();
  const [ip, ...args] = at('control');
  const env = { ...process.env, USHER_PARTITIONS: String(process.pid) };
  const self = ['node_modules/.bin/tsx', 'test/partitions/run.ts', kind, ...(isShort ? ['--short'] : [])];
  const { status } = spawnSync(ip!, [...args, ...self], { stdio: 'inherit', env });
  if (status !== 0) process.exitCode = 1;
  disconnectHosts();
}
