import { progress } from './progress.js';
import type { Effort, Figures, Line } from './row.js';
import { cpuOfServices } from './system-cpu.js';

export const RATE = 'per second';
export const CPU = 'CPU µs';
export const CPU_OF_ALL = 'CPU µs, with database and queue';

/** Something to measure. */
export interface Subject {
  name: string;
  isReference?: true;
  /** One round. */
  sample: () => Promise<Figures>;
}

/** The processor time that a process has used, in microseconds. */
export type CpuOf = () => Promise<number>;

/**
 * Measures the subjects in turn, round by round, so that a change of the machine's speed meets all of them. Before them, each
 * subject warms up for `warmUps` rounds that do not count. The figures are medians over the others.
 */
export async function inTurn(subjects: Subject[], rounds: number, warmUps = 1): Promise<Line[]> {
  const samples = new Map<Subject, Figures[]>(subjects.map((subject) => [subject, []]));
  for (const subject of subjects)
    for (let round = 1; round <= warmUps; round += 1) {
      progress(`${subject.name}: warming up`);
      await subject.sample();
    }
  for (let round = 1; round <= rounds; round += 1)
    for (const subject of subjects) {
      progress(`${subject.name}: round ${round} of ${rounds}`);
      samples.get(subject)!.push(await subject.sample());
    }
  return subjects.map((subject) => ({
    subject: subject.name,
    isReference: subject.isReference ?? false,
    figures: medians(samples.get(subject)!),
  }));
}

/** Keeps `concurrency` operations in progress for `seconds`. */
export async function closedLoop(operation: () => Promise<void>, cpu: CpuOf, effort: Effort): Promise<Figures> {
  const used = await countCpu(cpu);
  const startedAt = performance.now();
  let done = 0;
  const lane = async (): Promise<void> => {
    while (performance.now() - startedAt < effort.seconds * 1_000) {
      await operation();
      done += 1;
    }
  };
  await Promise.all(Array.from({ length: effort.concurrency }, lane));
  const elapsed = (performance.now() - startedAt) / 1_000;
  return { [RATE]: done / elapsed, ...(await used(done)) };
}

/** Counts from now on. The function that it returns tells the processor time of each of `count` operations. */
export async function countCpu(cpu: CpuOf): Promise<(count: number) => Promise<Figures>> {
  const before = [await cpu(), cpuOfServices()] as const;
  return async (count) => {
    const own = (await cpu()) - before[0];
    return { [CPU]: own / count, [CPU_OF_ALL]: (own + cpuOfServices() - before[1]) / count };
  };
}

/** The median of each column. */
export function medians(samples: Figures[]): Figures {
  const columns = Object.keys(samples[0] ?? {});
  return Object.fromEntries(columns.map((column) => [column, median(samples.map((figures) => figures[column]!))]));
}

export const median = (values: number[]): number => quantile(values, 0.5);

/** The quantile at `part`. The median of an even number of values is the upper one of the two in the middle. */
export function quantile(values: number[], part: number): number {
  return values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * part))]!;
}
