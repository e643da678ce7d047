import { expect, test } from '@jest/globals';
import { growth } from './soak.js';

const STEADY = { heapKb: 50_000, descriptors: 30, listeners: 200, connections: 9 };
type Sample = typeof STEADY;

/** What has grown in a run of so many minutes. */
const grownIn = (count: number, changed: (minute: number) => Partial<Sample>): string[] => {
  const samples = Array.from({ length: count }, (_, index) => ({ ...STEADY, ...changed(index + 1) }));
  return growth(new Map([['worker-1', samples]])).at(-1)!.offenders!;
};

test('values that vary and come back have not grown', () => {
  expect(grownIn(60, (minute) => ({ listeners: 200 + (minute % 3), heapKb: 50_000 + (minute % 2) * 2_000 }))).toEqual(
    [],
  );
});

test('a listener more each minute is growth; in a short run, connection pools still fill', () => {
  expect(grownIn(60, (minute) => ({ listeners: 200 + minute }))).toEqual([
    expect.stringContaining('worker-1 listeners'),
  ]);
  expect(grownIn(4, (minute) => ({ listeners: 200 + minute }))).toEqual([]);
});

test('memory that grows by more than 5 % from minute 10 on is growth; before, caches fill', () => {
  expect(grownIn(60, (minute) => ({ heapKb: 50_000 + minute * 100 }))).toHaveLength(1);
  expect(grownIn(60, (minute) => ({ heapKb: 40_000 + Math.min(minute, 10) * 1_000 }))).toEqual([]);
});
