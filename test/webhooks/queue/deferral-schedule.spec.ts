import { expect, test } from '@jest/globals';
import type { Refusal } from '../../../src/webhooks/queue/open-requests.js';
import { MAX_DEFERRAL_INTERVALS, DeferralSchedule } from '../../../src/webhooks/queue/deferral-schedule.js';

const INTERVAL = 30_000;
const SLOW = { of: 'client slow', retry: 'later' } as const;
const UNKNOWN = { of: 'client unknown', retry: 'soon' } as const;
const take = (deferrals: DeferralSchedule, count: number, refusal: Refusal = SLOW): number[] =>
  Array.from({ length: count }, () => deferrals.next(refusal));

test('deferred jobs return after one minimum interval, each later than the one before', () => {
  const pauses = take(new DeferralSchedule(INTERVAL, () => 5_000), 100);
  expect(pauses[0]).toBe(INTERVAL);
  for (const [index, pause] of pauses.slice(1).entries()) expect(pause).toBeGreaterThan(pauses[index]!);
  expect(pauses.at(-1)).toBeLessThan(INTERVAL * 1.5);
});

test('ten thousand jobs of one client return spread over eight minimum intervals', () => {
  const seconds = new Map<number, number>();
  for (const pause of take(new DeferralSchedule(INTERVAL), 10_000)) {
    expect(pause).toBeLessThanOrEqual(MAX_DEFERRAL_INTERVALS * INTERVAL);
    const second = Math.floor(pause / 1_000);
    seconds.set(second, (seconds.get(second) ?? 0) + 1);
  }
  expect(Math.max(...seconds.values())).toBeLessThan(100);
});

test('each client and host has its own schedule', () => {
  const deferrals = new DeferralSchedule(INTERVAL, () => 0);
  take(deferrals, 1_000);
  expect(deferrals.next({ of: 'client other', retry: 'later' })).toBe(INTERVAL);
});

test('jobs whose first answers are awaited return after one second, one every few milliseconds', () => {
  const pauses = take(new DeferralSchedule(INTERVAL, () => 5_000), 1_000, UNKNOWN);
  expect(pauses[0]).toBe(1_000);
  expect(pauses.at(-1)).toBeGreaterThan(2_000);
  expect(pauses.at(-1)).toBeLessThan(10_000);
});
