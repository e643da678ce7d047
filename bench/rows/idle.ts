import { setTimeout as sleep } from 'node:timers/promises';
import { commandsDuring } from '../harness/commands.js';
import { progress } from '../harness/progress.js';
import { figure, type Line, type Row } from '../harness/row.js';
import { reference, ServerProcess } from '../harness/server-process.js';
import { wakeUpsOf } from '../harness/system-cpu.js';
import { BenchUsher } from '../usher/usher.js';

const SQL = 'SQL statements a minute';
const REDIS = 'Redis commands a minute';
const CPU = 'CPU ms a second';
const WAKE_UPS = 'wake-ups a second';
const ALL = 'Usher, all roles';
const MINUTE_MS = 60_000;
/** What a process does after its start is not counted: it frees memory and discards code for about a minute. */
const SETTLE_MS = 60_000;

export const idle: Row = {
  name: 'idle',
  title: 'what a process without work sends to MariaDB and Redis, beside an empty application with one BullMQ worker',
  plotted: REDIS,
  async run({ isQuick }) {
    // Two minutes contain one retry run, whenever they begin.
    const minutes = isQuick ? 0.5 : 2;
    const usher = await BenchUsher.prepare('MariaDB + Redis');
    const processes: [string, () => Promise<ServerProcess>][] = [
      ['empty application', () => ServerProcess.start(reference('empty-application.mjs'), usher.settings)],
      ['Usher, api', () => usher.start('api')],
      [ALL, () => usher.start('all')],
    ];
    const lines: Line[] = [];
    for (const [subject, start] of processes) {
      progress(`${subject}: ${minutes} min`);
      lines.push({ subject, isReference: lines.length === 0, figures: await idling(start, minutes) });
    }
    const check = (what: string, most: number) => ({ what, value: figure(lines, what, ALL), target: { most } });
    return { lines, checks: [check(REDIS, 60), check(SQL, 20), check(WAKE_UPS, 5), check(CPU, 2)] };
  },
};

async function idling(start: () => Promise<ServerProcess>, minutes: number) {
  const server = await start();
  await sleep(SETTLE_MS);
  const usedBefore = await server.cpu();
  const wakeUpsBefore = wakeUpsOf(server.pid);
  const { sql, redis } = await commandsDuring(() => sleep(minutes * MINUTE_MS));
  const wakeUps = wakeUpsOf(server.pid) - wakeUpsBefore;
  const cpuMs = ((await server.cpu()) - usedBefore) / 1_000;
  await server.stop();
  return {
    [SQL]: sql / minutes,
    [REDIS]: redis / minutes,
    [WAKE_UPS]: wakeUps / minutes / 60,
    [CPU]: cpuMs / minutes / 60,
  };
}
