import type { Arrival } from './arrivals.js';
import type { Fault } from './faults.js';
import type { Traced } from './journal.js';
import type { AttemptRow, Tables } from './tables.js';

export interface Observed {
  tables: Tables;
  /** Sorted by time. */
  arrivals: Arrival[];
  /** Keys of the orders whose completion was answered 200. */
  acknowledged: string[];
  /** By key: when the completion was requested, of the orders whose receivers do answer. */
  requestedAt: Map<string, number>;
  unexpectedResponses: string[];
  unexpectedEnds: string[];
  /** What guessers of a client secret achieved that must be refused. */
  guessed: string[];
  /** Rotations of the master keys that were not refused although a process lacked them. */
  rotated: string[];
  faults: Fault[];
}

export const isSuccess = (status: number | null): boolean => status !== null && status >= 200 && status < 300;

/** The observations of a run, grouped by webhook. */
export class Evidence {
  readonly attempts: Map<string, AttemptRow[]>;
  readonly arrivals: Map<string, Arrival[]>;
  /** When each webhook's SUCCESS was recorded. */
  readonly successAt: Map<string, number>;
  /** When each webhook was recorded as FAILED. */
  readonly failedAt: Map<string, number>;
  readonly observed: Observed;
  private readonly attemptRows: Map<string, AttemptRow>;

  constructor(asLogged: Observed) {
    const { tables } = asLogged;
    const arrivals = sentInTime(asLogged.arrivals, tables.trace);
    this.observed = { ...asLogged, arrivals };
    const inOrder = [...tables.attempts].sort((left, right) => left.startedAt - right.startedAt);
    this.attempts = groupBy(inOrder, ({ webhook }) => webhook);
    this.arrivals = groupBy(arrivals, ({ webhook }) => webhook);
    this.attemptRows = new Map(tables.attempts.map((row) => [`${row.webhook} ${row.number}`, row]));
    const changedTo = (status: string): Map<string, number> => {
      const changes = tables.changes.filter(({ before, after }) => after === status && before !== after);
      return new Map(changes.map(({ webhook, at }) => [webhook, at]));
    };
    this.successAt = changedTo('SUCCESS');
    this.failedAt = changedTo('FAILED');
  }

  rowOf({ webhook, attempt }: Arrival): AttemptRow | undefined {
    return this.attemptRows.get(`${webhook} ${attempt}`);
  }

  /** Whether a process or the database was unavailable at some time between `from` and `until`. */
  wasDisturbed(from: number, until: number): boolean {
    return this.observed.faults.some(
      (fault) => ['process', 'database'].includes(fault.loss) && fault.from <= until && fault.until >= from,
    );
  }
}

/** A busy receiver may log a request late, but the request was sent before its outcome was recorded. */
export function sentInTime(arrivals: Arrival[], trace: Traced[]): Arrival[] {
  const recordedAt = new Map<string, number>();
  for (const { webhook, attempt, at } of trace)
    if (attempt && attempt.durationMs !== null) recordedAt.set(`${webhook} ${attempt.number}`, at);
  return arrivals
    .map((arrival) => {
      const recorded = recordedAt.get(`${arrival.webhook} ${arrival.attempt}`) ?? Infinity;
      return { ...arrival, at: Math.min(arrival.at, recorded) };
    })
    .sort((left, right) => left.at - right.at);
}

export function groupBy<T>(list: readonly T[], nameOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of list) {
    const group = groups.get(nameOf(item));
    if (group) group.push(item);
    else groups.set(nameOf(item), [item]);
  }
  return groups;
}
