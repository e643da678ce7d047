import { hrefOf, type Texts } from '../../../http/pages/fields.js';
import { html } from '../../../http/html.js';
import type { Quantile } from '../../../webhooks/figures/delivery-figure.entity.js';
import { type Figures, figuresOf, type Sums } from '../../../webhooks/figures/delivery-figures.js';
import { type Columns, table } from '../../../http/pages/parts.js';

const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

/** A time span for people: `45 ms`, `1.2 s`, `3 min`, `1.5 h`. */
export function shownMs(ms: number) {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < MINUTE_MS) return `${oneDecimal(ms / 1_000)} s`;
  return ms < HOUR_MS ? `${oneDecimal(ms / MINUTE_MS)} min` : `${oneDecimal(ms / HOUR_MS)} h`;
}

export const shownQuantile = (value: Quantile | null | undefined) =>
  value ? `${value.isMore ? 'over ' : ''}${shownMs(value.ms)}` : '–';

/** A part of a whole as a percentage: 100 % or 0 % only if it is exactly that. */
export function ratio(part: number | null) {
  if (part === null) return '–';
  if (part > 0.999 && part < 1) return '99.9 %';
  if (part > 0 && part < 0.001) return '0.1 %';
  return `${oneDecimal(part * 100)} %`;
}

/** When a period began, in UTC: the time of day, with the date where periods are of an hour or longer. */
function shownTime(startsAt: number, periodMs: number) {
  const text = new Date(startsAt).toISOString();
  if (periodMs >= DAY_MS) return text.slice(5, 10);
  return periodMs >= HOUR_MS ? `${text.slice(5, 10)} ${text.slice(11, 13)}h` : text.slice(11, 16);
}

const oneDecimal = (value: number) => String(Math.round(value * 10) / 10);

/** A span of time until now: `periods` whole ones of one length, and the one that runs. `key`: in the address of a page. */
export type Range = typeof LAST_DAY;

const LAST_DAY = { key: '24h', name: 'Last 24 hours', periodMs: HOUR_MS, periods: 24 };

export const RANGES = [
  { key: '1h', name: 'Last hour', periodMs: 5 * MINUTE_MS, periods: 12 },
  LAST_DAY,
  { key: '7d', name: 'Last 7 days', periodMs: 6 * HOUR_MS, periods: 28 },
  { key: '30d', name: 'Last 30 days', periodMs: DAY_MS, periods: 30 },
];

export const rangeOf = ({ range }: Texts) => RANGES.find(({ key }) => key === range) ?? LAST_DAY;

/** For figures that are counted by hour: the last hour becomes the present hour and the one before. */
export const inHours = (range: Range) =>
  range.periodMs < HOUR_MS ? { ...range, periodMs: HOUR_MS, periods: 1 } : range;

export const rangeLinks = (path: string, current: Range, filter: Texts = {}) =>
  html`<nav class="actions" aria-label="Range">
    ${RANGES.map((range) =>
      range === current
        ? html`<strong aria-current="true">${range.name}</strong>`
        : html`<a href="${hrefOf(path, { ...filter, range: range.key })}">${range.name}</a>`,
    )}
  </nav>`;

export type Point = ReturnType<typeof pointsOf>[number];

/** When the first period of a range begins: early enough for the whole range. The last one is the period that runs now. */
export const beginOf = ({ periodMs, periods }: Range, now: number) => now - (now % periodMs) - periods * periodMs;

/** The points of a range that ends at `now`, made of the sums of its periods. */
export const pointsOf = (range: Range, now: number, found: Map<number, Sums>) =>
  Array.from({ length: range.periods + 1 }, (_, index) => {
    const startsAt = beginOf(range, now) + index * range.periodMs;
    const sums = found.get(startsAt) ?? {};
    return { begin: shownTime(startsAt, range.periodMs), sums, figures: figuresOf([sums]) };
  });

export const figuresOfPoints = (points: Point[]) => figuresOf(points.map(({ sums }) => sums));

/** The shown figures, and those of the time before if they differ. */
export function withChange<Of>(now: Of, before: Of | undefined, show: (figures: Of) => string) {
  const [text, earlier] = [show(now), before === undefined ? '–' : show(before)];
  return html`${text} ${earlier !== '–' && earlier !== text && html`<span class="dim">was ${earlier}</span>`}`;
}

/** `before`: the figures of the time before. */
export interface Compared<Of> {
  figures: Of;
  before?: Of | undefined;
}

export const ATTEMPTS: Columns<Compared<Pick<Figures, 'attempts' | 'failures' | 'successRate'>>> = {
  Attempts: { number: ({ figures }) => figures.attempts },
  Failed: { number: ({ figures }) => figures.failures },
  Succeeded: {
    value: ({ figures }) => figures.successRate,
    number: ({ figures, before }) => withChange(figures, before, (one) => ratio(one.successRate)),
  },
};

/** The times below which 50 % and 95 % of the values are. */
export const PARTS = ['p50', 'p95'] as const;

export const quantileColumns = <Row>(
  prefix: string,
  of: (figures: Row) => Figures['duration'],
): Columns<Compared<Row>> =>
  Object.fromEntries(
    PARTS.map((name) => [
      prefix + name,
      {
        value: ({ figures }) => of(figures)[name]?.ms ?? null,
        number: ({ figures, before }) => withChange(figures, before, (one) => shownQuantile(of(one)[name])),
      },
    ]),
  );

/** The numbers of a chart as a table. Periods in which nothing happened are left out. */
export const figuresTable = (points: Point[]) =>
  html`<details>
    <summary>Numbers</summary>
    ${table<Point>(
      {
        'Start (UTC)': 'begin',
        ...ATTEMPTS,
        ...quantileColumns('Attempt ', ({ duration }) => duration),
        Delivered: { number: ({ figures }) => figures.delivered },
        'Ended FAILED': { number: ({ figures }) => figures.endedFailed },
        ...quantileColumns('Receipt ', ({ receipt }) => receipt),
      },
      points.filter(({ figures }) => figures.attempts > 0 || figures.endedFailed > 0),
      'There were no attempts.',
    )}
  </details>`;
