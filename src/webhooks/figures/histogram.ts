/** Upper bounds of the buckets of attempt durations. A last bucket has what is longer. */
export const DURATION_BOUNDS_MS = [10, 25, 50, 100, 200, 400, 700, 1_000, 2_000, 5_000, 10_000, 20_000, 30_000];

/** Upper bounds of the buckets of times to receipt: from a quick first attempt to the fifth one. A last bucket has what is longer. */
export const RECEIPT_BOUNDS_MS = [
  25, 50, 100, 200, 400, 700, 1_000, 2_000, 5_000, 15_000, 60_000, 150_000, 300_000, 600_000, 1_800_000,
];

/** The bucket of a value: its upper bound is inclusive. */
export function bucketOf(bounds: number[], value: number): number {
  const bucket = bounds.findIndex((bound) => value <= bound);
  return bucket < 0 ? bounds.length : bucket;
}

export interface Quantile {
  ms: number;
  /** True in the last bucket, whose values are longer than `ms` by an unknown time. */
  isMore: boolean;
}

/** A quantile of counted values, interpolated within its bucket. Null if nothing was counted. */
export function quantile(bounds: number[], counts: number[], part: number): Quantile | null {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  const rank = part * total;
  let below = 0;
  for (const [bucket, upper] of bounds.entries()) {
    const count = counts[bucket] ?? 0;
    if (count > 0 && below + count >= rank) {
      const lower = bounds[bucket - 1] ?? 0;
      return { ms: Math.round(lower + ((upper - lower) * (rank - below)) / count), isMore: false };
    }
    below += count;
  }
  return { ms: bounds.at(-1) ?? 0, isMore: true };
}
