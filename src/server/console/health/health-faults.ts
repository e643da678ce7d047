import { html } from '../../../http/html.js';
import type { Answers } from '../../health/cached-query.js';
import type { ListedProcess } from '../../health/processes.js';
import { type Problem, problemsOf, type State } from '../overview/problems.js';
import type { HealthData } from './health-data.js';

/** What the page on health knows. Null: no answer in time. */
export type HealthState = State & Answers<HealthData['queries']> & { ownId: string };

/** The signature's time is this process's. Receivers accept minutes, but a clock that drifts does not stop there. */
const MAX_CLOCK_MS = 5_000;
const MIN_FREE_DISK = 1_000_000_000;

/** What is wrong, the worst first, and what to do about it. */
export function faultsOf(state: HealthState): Problem[] {
  const processes = state.processes?.processes ?? [];
  const alive = processes.filter(({ isAlive }) => isAlive);
  const silent = processes.filter(({ isAlive }) => !isAlive);
  return [
    ...problemsOf(state),
    missingMigrations(state),
    diskFull(state),
    ...wrongClocks(state, alive),
    severalVersions(alive),
    silent.length > 0 && silentProcesses(silent),
  ].filter((fault) => !!fault);
}

function missingMigrations({ database }: HealthState): Problem | null {
  const { missing = [] } = database?.answer?.migrations ?? {};
  if (missing.length === 0) return null;
  return {
    kind: 'bad',
    what: html`Migrations are missing: ${missing.join(', ')}.`,
    remedy: html`Run <code>usher migrate</code>.`,
  };
}

function diskFull({ freeDisk }: HealthState): Problem | null {
  if (freeDisk === null || freeDisk >= MIN_FREE_DISK) return null;
  return {
    kind: 'warning',
    what: html`Only ${shownSize(freeDisk)} of disk space are free where the embedded database is.`,
    remedy: html`Make room before it is full: the database then accepts nothing.`,
  };
}

function wrongClocks({ database, ownId }: HealthState, alive: ListedProcess[]): Problem[] {
  const own = database?.answer ? [{ ...database.answer, name: 'This process' }] : [];
  return [...own, ...alive.filter(({ id }) => id !== ownId)]
    .filter(({ clockAheadMs }) => Math.abs(clockAheadMs) > MAX_CLOCK_MS)
    .map(({ name, clockAheadMs }) => ({
      kind: 'warning',
      what: html`The clock of ${name} is ${shownClock(clockAheadMs)}.`,
      remedy: html`Signatures carry the time of the process, and receivers refuse wrong ones. Synchronise the clocks of
      both machines, for example with NTP.`,
    }));
}

function severalVersions(alive: ListedProcess[]): Problem | null {
  const versions = new Set(alive.map(({ version }) => version));
  if (versions.size < 2) return null;
  return {
    kind: 'warning',
    what: html`Processes of different versions run: ${[...versions].sort().join(', ')}.`,
    remedy: html`Finish the upgrade: restart those of the older version.`,
  };
}

const silentProcesses = (silent: ListedProcess[]): Problem => ({
  kind: 'warning',
  what: html`${silent.length} process(es) stopped within the last hour without a word:
  ${silent.map(({ name }) => name).join(', ')}.`,
  remedy: html`A killed process looks like this. Nothing is lost; read the end of its log if nobody stopped it.`,
});

/** How far a clock is from that of the database. */
export function shownClock(aheadMs: number): string {
  if (Math.abs(aheadMs) < 100) return 'as the database’s';
  return `${Math.abs(aheadMs / 1_000).toFixed(1)} s ${aheadMs > 0 ? 'ahead of' : 'behind'} the database’s`;
}

export const shownSize = (bytes: number): string =>
  bytes >= 1e9 ? `${(bytes / 1e9).toFixed(1)} GB` : `${Math.round(bytes / 1e6)} MB`;
