import { type Html, html } from '../../../http/html.js';
import type { Quantile } from '../../../webhooks/figures/delivery-figure.entity.js';
import { type Figures, figuresOf, type Sums } from '../../../webhooks/figures/delivery-figures.js';
import { type Columns, table } from '../../../http/pages/parts.js';

const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

/** A time span for people: `45 ms`, `1.2 s`, `3 min`, `1.5 h`. */
export function shownMs(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < MINUTE_MS) return `${oneDecimal(ms / 1_000)} s`;
  return ms < HOUR_MS ? `${oneDecimal(ms / MINUTE_MS)} min` : `${oneDecimal(ms / HOUR_MS)} h`;
}

export const shownQuantile = (value: Quantile | null | undefined): string =>
  value ? `${value.isMore ? 'over ' : ''}${shownMs(value.ms)}` : '–';

/** A part of a whole as a percentage. It is 100 % or 0 % only if it is so exactly. */
export function ratio(part: number | null): string {
  if (part === null) return '–';
  if (part > 0.999 && part < 1) return '99.9 %';
  if (part > 0 && part < 0.001) return '0.1 %';
  return `${oneDecimal(part * 100)} %`;
}

/** When a period began, in UTC: the time of day, or the date where periods are longer than an hour. */
function shownTime(startsAt: number, periodMs: number): string {
  const text = new Date(startsAt).toISOString();
  if (periodMs >= DAY_MS) return text.slice(5, 10);
  return periodMs > HOUR_MS ? `${text.slice(5, 10)} ${text.slice(11, 13)}h` : text.slice(11, 16);
}

const oneDecimal = (value: number): string => String(Math.round(value * 10) / 10);

/** A span of time until now, as periods of one length. */
export interface Range {
  name: string;
  periodMs: number;
  periods: number;
}

export const LAST_HOUR: Range = { name: 'Last hour', periodMs: 5 * MINUTE_MS, periods: 12 };
export const LAST_DAY: Range = { name: 'Last 24 hours', periodMs: HOUR_MS, periods: 24 };
export const LAST_WEEK: Range = { name: 'Last 7 days', periodMs: 6 * HOUR_MS, periods: 28 };

/** The figures of one period. */
export interface Point {
  /** When it began, in UTC. */
  begin: string;
  /** What the figures are made of. */
  sums: Sums[];
  figures: Figures;
}

/** When the first period of a range begins. The last one is the period that runs now. */
export const beginOf = ({ periodMs, periods }: Range, now: number): number =>
  now - (now % periodMs) - (periods - 1) * periodMs;

/** The points of a range, made of sums over `stepMs`. */
export function pointsOf(range: Range, now: number, sums: Map<number, Sums>, stepMs = range.periodMs): Point[] {
  const { periodMs, periods } = range;
  const begin = beginOf(range, now);
  return Array.from({ length: periods }, (_, index) => {
    const startsAt = begin + index * periodMs;
    const steps = Array.from({ length: periodMs / stepMs }, (_, step) => sums.get(startsAt + step * stepMs));
    const found = steps.filter((step) => step !== undefined);
    return { begin: shownTime(startsAt, periodMs), sums: found, figures: figuresOf(found) };
  });
}

export const figuresOfPoints = (points: Point[]): Figures => figuresOf(points.flatMap(({ sums }) => sums));

/** The attempts of a period, of a host, or of a client at a host. */
export const ATTEMPTS: Columns<{ figures: Pick<Figures, 'attempts' | 'failures' | 'successRate'> }> = {
  Attempts: { number: ({ figures }) => figures.attempts },
  Failed: { number: ({ figures }) => figures.failures },
  Succeeded: { number: ({ figures }) => ratio(figures.successRate) },
};

/** What half and 95 % of some times are below. */
export const quantileColumns = <Row>(
  prefix: string,
  of: (figures: Row) => Figures['duration'],
): Columns<{ figures: Row }> => ({
  [`${prefix}p50`]: { number: ({ figures }) => shownQuantile(of(figures).p50) },
  [`${prefix}p95`]: { number: ({ figures }) => shownQuantile(of(figures).p95) },
});

/** The numbers of a chart, for those who cannot see it and for those who need them. Periods without attempts are left out. */
export function figuresTable(points: Point[]): Html {
  const shown = points.filter(({ figures }) => figures.attempts > 0 || figures.endedFailed > 0);
  const columns: Columns<Point> = {
    'Begin (UTC)': ({ begin }) => begin,
    ...ATTEMPTS,
    ...quantileColumns('Attempt ', ({ duration }) => duration),
    Delivered: { number: ({ figures }) => figures.delivered },
    'Ended FAILED': { number: ({ figures }) => figures.endedFailed },
    ...quantileColumns('Receipt ', ({ receipt }) => receipt),
  };
  return html`<details>
    <summary>Numbers</summary>
    ${table(columns, shown, 'There were no attempts.')}
  </details>`;
}
