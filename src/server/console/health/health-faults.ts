import { html } from '../../../http/html.js';
import { type Problem, problemsOf, type State } from '../overview/problems.js';
import type { Checked, DatabaseHealth, QueueHealth } from './health-data.js';

/** What the page on health knows. Null: no answer in time. */
export interface HealthState extends Omit<State, 'failing'> {
  database: Checked<DatabaseHealth> | null;
  queue: Checked<QueueHealth> | null;
  /** Bytes; null unless the database is embedded. */
  freeDisk: number | null;
  /** The id of this process. */
  ownId: string;
}

/** The signature's time is this process's. Receivers accept minutes, but a clock that drifts does not stop there. */
const MAX_CLOCK_MS = 5_000;
const MIN_FREE_DISK = 1_000_000_000;

/** What is wrong, the worst first, and what to do about it. */
export function faultsOf(state: HealthState): Problem[] {
  return [
    ...problemsOf({ ...state, failing: null }),
    missingMigrations(state),
    diskFull(state),
    ...wrongClocks(state),
    severalVersions(state),
    silentProcesses(state),
  ].filter((fault) => fault !== null);
}

function missingMigrations({ database }: HealthState): Problem | null {
  if (!database?.isUp || database.answer.migrations.missing.length === 0) return null;
  return {
    kind: 'bad',
    what: html`Migrations are missing: ${database.answer.migrations.missing.join(', ')}.`,
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

function wrongClocks({ database, processes, ownId }: HealthState): Problem[] {
  const own = database?.isUp ? [{ name: 'This process', clockAheadMs: database.answer.clockAheadMs }] : [];
  const others = (processes?.processes ?? []).filter(({ id, isAlive }) => isAlive && id !== ownId);
  return [...own, ...others]
    .filter(({ clockAheadMs }) => Math.abs(clockAheadMs) > MAX_CLOCK_MS)
    .map(({ name, clockAheadMs }) => ({
      kind: 'warning',
      what: html`The clock of ${name} is ${shownClock(clockAheadMs)}.`,
      remedy: html`Signatures carry the time of the process, and receivers refuse wrong ones. Synchronise the clocks of
      both machines, for example with NTP.`,
    }));
}

function severalVersions({ processes }: HealthState): Problem | null {
  const versions = new Set((processes?.processes ?? []).filter(({ isAlive }) => isAlive).map(({ version }) => version));
  if (versions.size < 2) return null;
  return {
    kind: 'warning',
    what: html`Processes of different versions run: ${[...versions].sort().join(', ')}.`,
    remedy: html`Finish the upgrade: restart those of the older version.`,
  };
}

function silentProcesses({ processes }: HealthState): Problem | null {
  const silent = (processes?.processes ?? []).filter(({ isAlive }) => !isAlive);
  if (silent.length === 0) return null;
  return {
    kind: 'warning',
    what: html`${silent.length} process(es) stopped within the last hour without a word:
    ${silent.map(({ name }) => name).join(', ')}.`,
    remedy: html`A killed process looks like this. Nothing is lost; read the end of its log if nobody stopped it.`,
  };
}

/** How far a clock is from that of the database. */
export function shownClock(aheadMs: number): string {
  if (Math.abs(aheadMs) < 100) return 'as the database’s';
  return `${Math.abs(aheadMs / 1_000).toFixed(1)} s ${aheadMs > 0 ? 'ahead of' : 'behind'} the database’s`;
}

export const shownSize = (bytes: number): string =>
  bytes >= 1e9 ? `${(bytes / 1e9).toFixed(1)} GB` : `${Math.round(bytes / 1e6)} MB`;
