import { execFileSync, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { appendFileSync, chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { bareEnvironment } from '../chaos/fleet.js';
import { JOURNAL } from '../chaos/journal.js';
import { RUN_SETTINGS } from '../chaos/limits.js';
import { waitFor } from '../chaos/processes.js';
import { Producers } from '../chaos/producers.js';
import { countPending, type Query, readTables } from '../chaos/tables.js';
import { type Fault, FAULTS, type Servers } from './faults.js';
import { addressOf, at, connectHosts, disconnectHosts, heal, type Host } from './hosts.js';
import { faultsIn, outcomeOf, secondsOf } from './outcome.js';
import { type QueueKind, startQueue } from './queues.js';
import { type Database, startAt, startDatabase } from './servers.js';

/** The servers that a run uses. A queue with replicas is tried with faults of its own. */
const SETUPS: Record<string, { database: Database; queue: QueueKind; isShort?: boolean }> = {
  mariadb: { database: 'mariadb', queue: 'single', isShort: true },
  postgres: { database: 'postgres', queue: 'none', isShort: true },
  sentinel: { database: 'mariadb', queue: 'sentinel' },
  cluster: { database: 'mariadb', queue: 'cluster' },
};
/** A fault begins when the first burst of orders is being completed. */
const BEGIN_MS = 400;

const isShort = process.argv.includes('--short');
const [ORDERS, FAULT_MS, SETTLE_MS] = isShort ? [30, 8_000, 60_000] : [150, 20_000, 240_000];

function faultsOf(queue: QueueKind): Fault[] {
  const hasReplica = queue === 'sentinel' || queue === 'cluster';
  return FAULTS.filter(
    ({ isShort: inShort, needs }) =>
      (!isShort || inShort) && (needs === 'replica') === hasReplica && !(needs === 'queue' && queue === 'none'),
  );
}

async function runOn(setup: string): Promise<number> {
  const { database: kind, queue: queueKind } = SETUPS[setup]!;
  const folder = mkdtempSync(join(tmpdir(), 'usher-partitions-'));
  chmodSync(folder, 0o755);
  const database = await startDatabase(kind, folder);
  const queue = queueKind === 'none' ? null : await startQueue(queueKind, folder);
  const { query } = database;
  const settings = {
    ...{
      ...RUN_SETTINGS,
      DATABASE_URL: database.url,
      ...(queue && { QUEUE_URL: queue.url }),
      HOST: '0.0.0.0',
      PORT: '3000',
      WEBHOOK_ALLOW_PRIVATE_HOSTS: 'true',
    },
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
  for (const host of ['api', 'worker-1', 'worker-2'] as Host[])
    startAt(host, folder, [process.execPath, 'dist/main.js'], host, { ...env, USHER_ROLE: host.split('-')[0] });
  const url = `http://${addressOf('api')}:3000`;
  await waitFor('the api answers', 120_000, async () => (await fetch(`${url}/health`)).status < 500);
  const client = { id: created.client_id!, secret: created.client_secret! };
  let faults = 0;
  const setting = { setup, servers: { database, queue }, query, url, client, log: join(folder, 'receiver.log') };
  for (const fault of faultsOf(queueKind)) faults += await underFault(fault, setting);
  if (faults === 0) rmSync(folder, { recursive: true, force: true });
  else console.log(`Logs are in ${folder}`);
  return faults;
}

interface Setting {
  setup: string;
  servers: Servers;
  query: Query;
  url: string;
  client: { id: string; secret: string };
  log: string;
}

let next = 0;

/** Completes orders while the fault lasts, waits until all their notifications have ended, and prints one line. */
async function underFault(
  { name, inject }: Fault,
  { setup, servers, query, url, client, log }: Setting,
): Promise<number> {
  const first = next;
  next += ORDERS;
  const urlOf = (order: number): string => `http://${addressOf('receiver')}:8080/${first + order}`;
  const producers = new Producers([url], client, { seed: first, backend: 'services', orders: ORDERS, urlOf });
  const done = producers.run(FAULT_MS);
  await sleep(BEGIN_MS);
  const nameOfPrimary = async (): Promise<string> => JSON.stringify(await servers.queue?.primary());
  const primary = await nameOfPrimary();
  await Promise.all([inject(servers, FAULT_MS), sleep(FAULT_MS)]);
  heal();
  await done;
  const until = Date.now() + SETTLE_MS;
  while (Date.now() < until && (await countPending(query).catch(() => 1)) > 0) await sleep(500);
  const { webhooks, trace, attempts } = await readTables(query);
  const outcome = outcomeOf(webhooks, trace, log, { requestedAt: producers.requestedAt, orders: ORDERS });
  const ids = new Set(webhooks.filter((one) => producers.requestedAt.has(one.referenceId)).map(({ id }) => id));
  const made = attempts.filter(({ webhook }) => ids.has(webhook)).length;
  const { lost, early, overFive, repeated, unknown } = outcome;
  const slowest = (Math.max(0, ...producers.tookMs) / 1_000).toFixed(1);
  const moved = (await nameOfPrimary()) === primary ? '' : '; another primary since';
  const cells = [setup, name + moved, ORDERS, made, lost, early, overFive, repeated, unknown.length, slowest];
  const line = `| ${[...cells, secondsOf(outcome, 0.5), secondsOf(outcome, 1)].join(' | ')} |`;
  console.log(line);
  appendFileSync(process.env.USHER_PARTITIONS_TABLE!, `${line}\n`);
  for (const text of [...producers.unexpected, ...unknown.slice(0, 3)]) console.log(text);
  return faultsIn(outcome);
}

const HEADER = [
  '| servers | fault | notifications | attempts | lost | early | over five | repeated after SUCCESS | unknown steps | longest completion s | median delivery s | longest delivery s |',
  '| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |',
];

if (process.env.USHER_PARTITIONS) {
  // At the host `control`, whose clock and files are those of the machine.
  process.exit((await runOn(process.argv[2]!)) === 0 ? 0 : 1);
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
const table = join(mkdtempSync(join(tmpdir(), 'usher-partitions-')), 'table.md');
writeFileSync(table, `${HEADER.join('\n')}\n`);
console.log(HEADER.join('\n'));
const named = process.argv.slice(2).filter((name) => name in SETUPS);
for (const setup of named.length > 0
  ? named
  : Object.keys(SETUPS).filter((name) => !isShort || SETUPS[name]!.isShort)) {
  connectHosts();
  const [ip, ...args] = at('control');
  const env = { ...process.env, USHER_PARTITIONS: String(process.pid), USHER_PARTITIONS_TABLE: table };
  const self = ['node_modules/.bin/tsx', 'test/partitions/run.ts', setup, ...(isShort ? ['--short'] : [])];
  const { status } = spawnSync(ip!, [...args, ...self], { stdio: 'inherit', env });
  if (status !== 0) process.exitCode = 1;
  disconnectHosts();
}
console.log(`\n${readFileSync(table, 'utf8')}`);
