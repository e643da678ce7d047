import { GrownDatabase } from '../usher/grown-database.js';
import { inTurn, median, type Subject } from '../harness/measure.js';
import { figure, type Line, type Result, type Row } from '../harness/row.js';

const BATCH = 64;
const CALLS = 20;
const LATE_MS = 60_000;
const OVERDUE = 100;
const EXPIRED = 500;

/** Milliseconds of one call. */
type Operation = (database: GrownDatabase) => Promise<number>;

const OPERATIONS: Record<string, Operation> = {
  [`claim of ${BATCH}`]: async (database) => {
    const { claims } = database.services;
    const ids = await database.addDue(BATCH * CALLS);
    return medianOf(CALLS, (n) => claims.claim(ids.slice(n * BATCH, (n + 1) * BATCH)));
  },
  [`sweep, ${OVERDUE} overdue`]: ({ services }) => medianOf(CALLS, () => services.sweep.run('overdue', Date.now())),
  'dedupe look-up': ({ services, clientId, references }) =>
    medianOf(10 * CALLS, async () => {
      const referenceId = references[Math.floor(Math.random() * references.length)]!;
      const { isNew } = await services.webhooks.notify({ referenceId, clientId, data: {} });
      if (isNew) throw new Error(`${referenceId} was not found`);
    }),
  'token look-up': ({ services, tokens }) =>
    medianOf(10 * CALLS, async () => {
      // Each token once, because the service remembers it.
      if (!(await services.tokens.holderOf(tokens.pop()!))) throw new Error('a token was not found');
    }),
  [`purge of ${EXPIRED} + ${EXPIRED}`]: async (database) => {
    await database.addExpired(EXPIRED);
    return medianOf(1, () => database.services.purge.run());
  },
};

const titleOf = (size: number): string => `${size.toLocaleString('en')} rows, ms`;

export const growth: Row = {
  name: 'growth',
  title: 'milliseconds of one call, MariaDB + Redis, with few and with many rows in each table',
  plotted: 'last / first',
  async run(effort) {
    const sizes = effort.isQuick ? [1_000, 10_000] : [10_000, 100_000, 1_000_000];
    const databases: GrownDatabase[] = [];
    for (const size of sizes) databases.push(await GrownDatabase.grow(size, effort));
    for (const database of databases) {
      await database.addDue(OVERDUE, LATE_MS);
      // Adds their jobs, which wait: no worker runs.
      await database.services.sweep.run('overdue', Date.now());
    }
    const subjects = databases.map((database): Subject => ({
      name: titleOf(database.size),
      sample: async () => {
        const figures: Record<string, number> = {};
        for (const [name, operation] of Object.entries(OPERATIONS)) figures[name] = await operation(database);
        return figures;
      },
    }));
    return byOperation(await inTurn(subjects, effort.rounds), sizes.map(titleOf));
  },
};

/** A line for each operation, with a column for each size. */
function byOperation(bySize: Line[], sizes: string[]): Result {
  const [first, last] = [sizes[0]!, sizes.at(-1)!];
  const lines = Object.keys(OPERATIONS).map((subject) => {
    const times = Object.fromEntries(sizes.map((size) => [size, figure(bySize, subject, size)]));
    return { subject, isReference: false, figures: { ...times, 'last / first': times[last]! / times[first]! } };
  });
  const checks = lines.map(({ subject, figures }) => ({
    what: `${subject}: time at the last size against the first`,
    value: figures['last / first']!,
    target: { most: 1.5 },
  }));
  return { lines, checks };
}

async function medianOf(count: number, call: (n: number) => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (let n = 0; n < count; n += 1) {
    const startedAt = performance.now();
    await call(n);
    times.push(performance.now() - startedAt);
  }
  return median(times);
}
