// node test/bundled.mjs test/upgrade/million.ts --rows 1000000, with TEST_BACKEND=mariadb or postgres: a large database of 0.2.0 is
// migrated under load while processes of 0.2.0 run, and then of both versions.
import { execFile } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { bareEnvironment, SERVER } from '../chaos/fleet.js';
import { JOURNAL, readTrace } from '../chaos/journal.js';
import { RUN_SETTINGS } from '../chaos/limits.js';
import { freePort } from '../support/ports.js';
import { answers, end, start, waitFor } from '../chaos/processes.js';
import { Producers } from '../chaos/producers.js';
import { faultsIn, outcomeOf, secondsOf } from '../partitions/outcome.js';
import { BACKEND } from '../support/backend.js';
import { OwnDatabase } from '../support/own-database.js';
import { releasedBuild } from '../support/released-build.js';

const ROWS = Number(process.argv[process.argv.indexOf('--rows') + 1] || 1_000_000);
const [START_MS, END_MS, SETTLE_MS] = [120_000, 30_000, 180_000];
/** Orders a second while the database is migrated and afterwards. */
const [RATE, AFTER_MS] = [10, 30_000];
const isMariadb = BACKEND === 'mariadb';
const PRESENT = { main: SERVER, cli: 'dist/cli.js' };

const database = await OwnDatabase.create();
const folder = mkdtempSync(join(tmpdir(), 'usher-million-'));
const settings = { ...RUN_SETTINGS, ...database.settings };
const env = { ...bareEnvironment(), ...settings };
const log = join(folder, 'receiver.log');
const children: ReturnType<typeof start>[] = [];

async function usher(cli: string, ...args: string[]): Promise<string> {
  return (await promisify(execFile)(process.execPath, [cli, ...args], { env })).stdout;
}

async function startUsher(main: string, role: string): Promise<string> {
  const port = await freePort();
  children.push(
    start(process.execPath, [main], join(folder, `${role}-${port}.log`), {
      ...env,
      USHER_ROLE: role,
      PORT: String(port),
    }),
  );
  await waitFor(`${main} (${role}) answers`, START_MS, () => answers(port));
  return `http://127.0.0.1:${port}`;
}

/** Copies the only row of a table. Each copy differs in these columns, which are expressions of its number `n`. */
async function multiply(table: string, changes: Record<string, string>): Promise<void> {
  const schema = isMariadb ? 'DATABASE()' : 'current_schema()';
  const found = await database.query(
    `SELECT column_name AS name FROM information_schema.columns WHERE table_schema = ${schema} AND table_name = '${table}'`,
  );
  const names = found.map(({ name }) => String(name));
  const numbers = isMariadb ? `(SELECT seq AS n FROM seq_1_to_${ROWS}) s` : `generate_series(1, ${ROWS}) AS s(n)`;
  const values = names.map((name) => changes[name] ?? `t.${name}`);
  await database.query(
    `INSERT INTO ${table} (${names.join(', ')}) SELECT ${values.join(', ')} FROM ${table} t, ${numbers}`,
  );
}

async function fill(): Promise<void> {
  const id = `CONCAT('bulk', LPAD(CONCAT(n, ''), 18, '0'))`;
  const booking = { booking_id: `CONCAT('BK-', n)`, transaction_id: `CONCAT('TX-', n)` };
  await multiply('usher_movie_order', { id, list_position: 'n', completion_position: 'n', ...booking });
  await multiply('usher_webhook', { id, reference_id: id, live_key: `CONCAT('bulk:', n)` });
  await multiply('usher_webhook_attempt', { webhook_id: id });
}

/** The longest time that a write of each table waited, and how often it was tried, until `isOver`. */
async function longestWaits(isOver: () => boolean): Promise<string[]> {
  const writes = {
    usher_movie_order: 'status = status',
    usher_webhook: 'status = status',
    usher_webhook_attempt: 'number = number',
  };
  return Promise.all(
    Object.entries(writes).map(async ([table, change]) => {
      const where = table === 'usher_webhook_attempt' ? 'webhook_id' : 'id';
      let longest = 0;
      while (!isOver()) {
        const startedAt = Date.now();
        await database.query(`UPDATE ${table} SET ${change} WHERE ${where} = 'bulk000000000000000001'`);
        longest = Math.max(longest, Date.now() - startedAt);
        await sleep(20);
      }
      return `${table} ${longest} ms`;
    }),
  );
}

async function timed(name: string, work: () => Promise<unknown>): Promise<string> {
  let isOver = false;
  const waits = longestWaits(() => isOver);
  const startedAt = Date.now();
  await work();
  const seconds = ((Date.now() - startedAt) / 1_000).toFixed(1);
  isOver = true;
  return `| ${[name, seconds, (await waits).join(', ')].join(' | ')} |`;
}

/** Migrates, and prints when each migration was recorded. */
async function migrate(): Promise<void> {
  const startedAt = Date.now();
  const seen = new Set<string>();
  const look = async (isFirst = false): Promise<void> => {
    for (const row of await database.query('SELECT name FROM usher_migration ORDER BY id')) {
      const name = String(row.name);
      if (!seen.has(name) && !isFirst) console.log(`${name} after ${((Date.now() - startedAt) / 1_000).toFixed(1)} s`);
      seen.add(name);
    }
  };
  await look(true);
  let hasEnded = false;
  const migrated = usher(PRESENT.cli, 'migrate').finally(() => (hasEnded = true));
  for (; !hasEnded; await sleep(50)) await look();
  await migrated;
  await look();
}

async function migrateUnderLoad(): Promise<number> {
  const released = releasedBuild();
  await usher(released.cli, 'migrate');
  const created = JSON.parse(await usher(released.cli, 'client', 'create', '--name', 'Million', '--json')) as object;
  const { client_id: id, client_secret: secret } = created as Record<'client_id' | 'client_secret', string>;
  const receiverPort = await freePort();
  const receiver = [resolve('test/partitions/receiver.mjs'), String(receiverPort)];
  children.push(start(process.execPath, receiver, log, process.env));
  const urls = [await startUsher(released.main, 'api')];
  await startUsher(released.main, 'worker');
  const load = (orders: number, seed: number): Producers =>
    new Producers(urls, { id, secret }, { seed, backend: 'embedded', orders, urlOf: (n) => urlOf(seed + n) });
  const urlOf = (order: number): string => `http://127.0.0.1:${receiverPort}/${order}`;
  const isDelivered = async (): Promise<boolean> =>
    (await database.query(`SELECT id FROM usher_webhook WHERE status = 'PENDING'`)).length === 0;
  const template = load(1, 1);
  await template.run(1);
  await waitFor('the first order is notified', START_MS, isDelivered);
  console.log(`filling ${BACKEND} with ${ROWS} orders, notifications and attempts`);
  await fill();
  for (const statement of JOURNAL[isMariadb ? 'mariadb' : 'postgres']) await database.query(statement);

  const loads: Producers[] = [];
  const lines = ['| step, under load | s | longest wait of a write |', '| --- | ---: | --- |'];
  const under = async (name: string, work: () => Promise<unknown>): Promise<void> => {
    let isOver = false;
    const producing = (async () => {
      while (!isOver) {
        const next = load(RATE, 10 + loads.length * RATE);
        loads.push(next);
        await Promise.all([next.run(1_000), sleep(1_000)]);
      }
    })();
    await sleep(2_000);
    const line = await timed(name, work);
    isOver = true;
    await producing;
    lines.push(line);
  };
  await under('0.2.0 alone', () => sleep(10_000));
  await under('usher migrate', migrate);
  await under('usher migrate --indexes', () => usher(PRESENT.cli, 'migrate', '--indexes'));
  urls.push(await startUsher(PRESENT.main, 'api'));
  await startUsher(PRESENT.main, 'worker');
  await under('both versions', () => sleep(AFTER_MS));
  await waitFor('all are delivered', SETTLE_MS, isDelivered).catch(() => undefined);
  console.log(lines.join('\n'));
  return outcome(loads);
}

async function outcome(loads: Producers[]): Promise<number> {
  const rows = await database.query(`SELECT id, reference_id, status FROM usher_webhook WHERE id NOT LIKE 'bulk%'`);
  const webhooks = rows.map((row) => ({
    id: String(row.id),
    referenceId: String(row.reference_id),
    status: String(row.status),
  }));
  const trace = await readTrace((sql) => database.query(sql));
  const requestedAt = new Map(loads.flatMap((one) => [...one.requestedAt]));
  const found = outcomeOf(webhooks, trace, log, { requestedAt, orders: loads.length * RATE });
  const { lost, early, overFive, repeated, unknown } = found;
  console.log(
    `${loads.length * RATE} notifications: ${lost} lost, ${early} early, ${overFive} over five, ${repeated} repeated after SUCCESS, ` +
      `${unknown.length} with unknown steps; median ${secondsOf(found, 0.5)} s, longest ${secondsOf(found, 1)} s, ` +
      `longest completion ${Math.max(...loads.flatMap(({ tookMs }) => tookMs))} ms`,
  );
  const unexpected = loads.flatMap((one) => one.unexpected);
  for (const text of [...unexpected, ...unknown.slice(0, 3)]) console.log(text);
  return faultsIn(found) + unexpected.length;
}

async function cleanUp(): Promise<void> {
  await Promise.all(children.map((child) => end(child, 'SIGTERM', END_MS)));
  await database.drop();
}

for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => void cleanUp().finally(() => process.exit(130)));
let faults = 1;
try {
  faults = await migrateUnderLoad();
} finally {
  await cleanUp();
}
console.log(faults === 0 ? 'None was lost, early, over five or repeated.' : `Logs are in ${folder}`);
process.exitCode = faults === 0 ? 0 : 1;
