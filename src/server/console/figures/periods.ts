import { type Figures, figuresOf, type Sums } from '../../../webhooks/figures/delivery-figures.js';

export const FIVE_MINUTES_MS = 300_000;
export const HOUR_MS = 3_600_000;

/** A span of time until now, as periods of one length. */
export interface Range {
  name: string;
  periodMs: number;
  periods: number;
}

export const LAST_HOUR: Range = { name: 'Last hour', periodMs: FIVE_MINUTES_MS, periods: 12 };
export const LAST_DAY: Range = { name: 'Last 24 hours', periodMs: HOUR_MS, periods: 24 };
export const LAST_WEEK: Range = { name: 'Last 7 days', periodMs: 6 * HOUR_MS, periods: 28 };

/** The figures of one period. */
export interface Point {
  startsAt: number;
  /** What the figures are made of. */
  sums: Sums[];
  figures: Figures;
}

/** When the first period of a range begins. The last one is the period that runs now. */
export const beginOf = ({ periodMs, periods }: Range, now: number): number =>
  now - (now % periodMs) - (periods - 1) * periodMs;

/** The points of a range, made of sums over `stepMs`. */
export function pointsOf(range: Range, now: number, sums: Map<number, Sums>, stepMs: number): Point[] {
  const { periodMs, periods } = range;
  const begin = beginOf(range, now);
  return Array.from({ length: periods }, (_, index) => {
    const startsAt = begin + index * periodMs;
    const steps = Array.from({ length: periodMs / stepMs }, (_, step) => sums.get(startsAt + step * stepMs));
    const found = steps.filter((step) => step !== undefined);
    return { startsAt, sums: found, figures: figuresOf(found) };
  });
}

export const figuresOfPoints = (points: Point[]): Figures => figuresOf(points.flatMap(({ sums }) => sums));
