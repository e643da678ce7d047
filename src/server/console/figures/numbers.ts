import type { Quantile } from '../../../webhooks/figures/delivery-figure.entity.js';

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

/** A time span for people: `45 ms`, `1.2 s`, `3 min`, `1.5 h`. */
export function shownMs(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < MINUTE_MS) return `${oneDecimal(ms / 1_000)} s`;
  return ms < HOUR_MS ? `${oneDecimal(ms / MINUTE_MS)} min` : `${oneDecimal(ms / HOUR_MS)} h`;
}

export const shownQuantile = (value: Quantile | null): string =>
  value === null ? '–' : `${value.isMore ? 'over ' : ''}${shownMs(value.ms)}`;

/** A part of a whole as a percentage. It is 100 % or 0 % only if it is so exactly. */
export function ratio(part: number | null): string {
  if (part === null) return '–';
  if (part > 0.999 && part < 1) return '99.9 %';
  if (part > 0 && part < 0.001) return '0.1 %';
  return `${oneDecimal(part * 100)} %`;
}

/** When a period began, in UTC: the time of day, or the date where periods are longer than an hour. */
export function shownTime(startsAt: number, periodMs: number): string {
  const text = new Date(startsAt).toISOString();
  if (periodMs >= DAY_MS) return text.slice(5, 10);
  return periodMs > HOUR_MS ? `${text.slice(5, 10)} ${text.slice(11, 13)}h` : text.slice(11, 16);
}

const oneDecimal = (value: number): string => String(Math.round(value * 10) / 10);
