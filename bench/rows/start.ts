import { newBackend } from '../harness/backend.js';
import { inTurn, type Subject } from '../harness/measure.js';
import { type Line, ratio, relativeTo, type Row } from '../harness/row.js';
import { built, reference, runCommand, ServerProcess, type Settings } from '../harness/server-process.js';
import { BenchUsher, COMMON } from '../usher/usher.js';

const EMPTY = 'empty application';
const MS = 'ms';
const CPU_MS = 'CPU ms';
const FIRST = 'embedded, first start';
const SECOND = 'embedded, second start';

export const start: Row = {
  name: 'start',
  title: 'from the start of a process until it is ready, beside an empty Nest + TypeORM + BullMQ application',
  plotted: MS,
  async run(effort) {
    const { settings } = await BenchUsher.prepare('MariaDB + Redis');
    const reopened = { ...COMMON, ...(await newBackend('embedded')) };
    await started('', built('main.js'), async () => reopened).sample();
    const subjects: Subject[] = [
      { ...started(EMPTY, reference('empty-application.mjs'), async () => settings), isReference: true },
      started('MariaDB + Redis', built('main.js'), async () => settings),
      started(FIRST, built('main.js'), async () => ({ ...COMMON, ...(await newBackend('embedded')) })),
      started(SECOND, built('main.js'), async () => reopened),
    ];
    const lines = await inTurn(subjects, effort.isQuick ? 1 : 5);
    const check = (subject: string, most: number) => ({
      what: `${subject}: time against an ${EMPTY}`,
      value: ratio(lines, MS, subject, EMPTY),
      target: { most },
    });
    return { lines: withRatio(lines, MS), checks: [check('MariaDB + Redis', 1.5), check(SECOND, 2)] };
  },
};

const withRatio = (lines: Line[], column: string): Line[] =>
  relativeTo(lines, column, EMPTY, `${column}, ${EMPTY} = 1`);

/** A round is one start of a process with all roles, which then ends. */
function started(name: string, entry: string, settings: () => Promise<Settings>): Subject {
  const sample = async () => {
    const server = await ServerProcess.start(entry, await settings());
    const { cpu } = await server.used();
    await server.stop();
    return { [MS]: server.startedInMs, [CPU_MS]: cpu / 1_000 };
  };
  return { name, sample };
}

const LIST = 'webhook list';

export const cli: Row = {
  name: 'cli',
  title: '"webhook list" beside a running server, beside an empty application that lists a table',
  plotted: CPU_MS,
  async run(effort) {
    const [mariadb, embedded] = [await BenchUsher.prepare('MariaDB + Redis'), await BenchUsher.prepare('embedded')];
    for (const usher of [mariadb, embedded]) await usher.start('all');
    const list = ['webhook', 'list', '--json'];
    const subjects: Subject[] = [
      { ...command(EMPTY, reference('empty-application.mjs'), ['list'], mariadb.settings), isReference: true },
      command(`${LIST}, MariaDB`, built('cli.js'), list, mariadb.settings),
      command(`${LIST}, embedded`, built('cli.js'), list, embedded.settings),
    ];
    const lines = await inTurn(subjects, effort.isQuick ? 1 : 5);
    const checks = [`${LIST}, MariaDB`, `${LIST}, embedded`].map((subject) => ({
      what: `${subject}: CPU against an ${EMPTY}`,
      value: ratio(lines, CPU_MS, subject, EMPTY),
      target: { most: 1.2 },
    }));
    return { lines: withRatio(lines, CPU_MS), checks };
  },
};

function command(name: string, entry: string, args: string[], settings: Settings): Subject {
  const sample = async () => {
    const { ms, cpu } = await runCommand(entry, args, settings);
    return { [MS]: ms, [CPU_MS]: cpu / 1_000 };
  };
  return { name, sample };
}
