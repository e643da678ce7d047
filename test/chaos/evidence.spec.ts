import { expect, test } from '@jest/globals';
import type { Arrival } from './arrivals.js';
import { sentInTime } from './evidence.js';
import { unknownSteps } from './journal.js';

const arrival = (attempt: number, at: number) => ({ webhook: 'w', attempt, at }) as Arrival;
const row = (status: string, attempts: number, due: number | null) => ({ status, attempts, due });
const attempt = (number: number, startedAt: number, durationMs: number | null, wasOk = false) => ({
  ...{ number, startedAt, durationMs, wasOk },
});

/** A first attempt without an answer for 2 s, and a second one that is answered. */
const TRACE = [
  { webhook: 'w', at: 100_000, row: { before: null, after: row('PENDING', 0, 100_000) } },
  {
    ...{ webhook: 'w', at: 100_001, attempt: attempt(1, 100_001, null) },
    row: { before: row('PENDING', 0, 100_000), after: row('PENDING', 1, 116_000) },
  },
  {
    ...{ webhook: 'w', at: 102_010, attempt: attempt(1, 100_001, 2_002) },
    row: { before: row('PENDING', 1, 116_000), after: row('PENDING', 1, 108_000) },
  },
  {
    ...{ webhook: 'w', at: 108_000, attempt: attempt(2, 108_000, null) },
    row: { before: row('PENDING', 1, 108_000), after: row('PENDING', 2, 124_000) },
  },
  {
    ...{ webhook: 'w', at: 108_050, attempt: attempt(2, 108_000, 40, true) },
    row: { before: row('PENDING', 2, 124_000), after: row('SUCCESS', 2, null) },
  },
];

test('a request that a busy receiver logged after its outcome, and after the next request, arrived before its outcome', () => {
  const arrivals = sentInTime([arrival(2, 108_010), arrival(1, 109_000)], TRACE);
  expect(arrivals).toEqual([arrival(1, 102_010), arrival(2, 108_010)]);
  expect(unknownSteps(TRACE, arrivals)).toEqual([]);
});

test('a request without an outcome arrived when it was logged', () => {
  expect(sentInTime([arrival(1, 109_000)], TRACE.slice(0, 2))).toEqual([arrival(1, 109_000)]);
});

test('two requests that were logged in time and too close are reported', () => {
  const close = TRACE.slice(0, 2).concat({ ...TRACE[3]!, at: 101_000, attempt: attempt(2, 101_000, null) });
  const arrivals = sentInTime([arrival(1, 100_002), arrival(2, 101_001)], close);
  expect(unknownSteps(close, arrivals)).toHaveLength(1);
});
