import { describe, expect, test } from '@jest/globals';
import { DURATIONS, quantile, RECEIPTS } from '../../../src/webhooks/figures/delivery-figure.entity.js';
import { bucketOf } from '../../../src/webhooks/figures/add-outcomes.js';

/** A distribution without a pattern that the interpolation could profit from. */
const VALUES = Array.from({ length: 999 }, (_, n) => Math.round(((n * 7_919) % 997) ** 2 / 40));

const histogramOf = (bounds: number[], values: number[]): number[] => {
  const counts = [...bounds, 0].map(() => 0);
  for (const value of values) counts[bucketOf(bounds, value)]! += 1;
  return counts;
};

describe('a quantile of a histogram', () => {
  test.each([
    ['durations', DURATIONS.bounds],
    ['times to receipt', RECEIPTS.bounds],
  ])('of %s is in the bucket of the exact one', (_name, bounds) => {
    const sorted = [...VALUES].sort((one, other) => one - other);
    const counts = histogramOf(bounds, VALUES);
    for (const part of [0.01, 0.25, 0.5, 0.9, 0.95, 0.99]) {
      const exact = sorted[Math.ceil(part * sorted.length) - 1]!;
      expect(bucketOf(bounds, quantile(bounds, counts, part)!.ms)).toBe(bucketOf(bounds, exact));
    }
  });

  test('is null if nothing was counted, lies within its bucket, and has no upper bound in the last bucket', () => {
    const bounds = [10, 20];
    expect(quantile(bounds, [0, 0, 0], 0.5)).toBeNull();
    expect(quantile(bounds, [0, 4, 0], 0.5)).toEqual({ ms: 15, isMore: false });
    expect(quantile(bounds, [0, 4, 0], 1)).toEqual({ ms: 20, isMore: false });
    expect(quantile(bounds, [1, 0, 9], 0.5)).toEqual({ ms: 20, isMore: true });
  });
});

test.each([
  [0, 0],
  [10, 0],
  [11, 1],
  [30_000, 12],
  [30_001, 13],
])('a duration of %i ms is in bucket %i', (value, bucket) => {
  expect(bucketOf(DURATIONS.bounds, value)).toBe(bucket);
});
