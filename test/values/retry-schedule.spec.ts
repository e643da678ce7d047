import { expect, test } from '@jest/globals';
import { longestWaitMs, nextAttemptAt, SPECIFIED_RETRY } from '../../src/values/retry-schedule.js';

const at = (time: string): number => Date.parse(`2026-01-01T${time}Z`);

test.each([
  ['asks for nothing', '12:00:20', 0, '12:02:00'],
  ['asks for less than the schedule', '12:00:20', 15, '12:02:00'],
  ['asks for nothing near a retry run', '12:01:50', 0, '12:04:00'],
  ['asks for a time between two retry runs', '12:00:20', 200, '12:04:00'],
  ['asks for exactly a retry run', '12:00:20', 220, '12:04:00'],
  ['asks for the third retry run', '12:00:20', 250, '12:06:00'],
  ['asks for more than the third retry run', '12:00:20', 400, '12:06:00'],
  ['asks for a day', '12:01:31', 86_400, '12:08:00'],
  ['asks without end', '12:00:20', Infinity, '12:06:00'],
])('a receiver that %s, from %s, gets its next attempt on time', (_name, ended, askedSeconds, due) => {
  expect(nextAttemptAt(SPECIFIED_RETRY, 1, at(ended), askedSeconds * 1_000)).toBe(at(due));
});

test('five attempts are over in half an hour, however long the receiver asks to wait', () => {
  const timeout = SPECIFIED_RETRY.timeoutMs;
  for (let start = at('12:00:00'); start < at('12:02:00'); start += 1_000) {
    let ended = start + timeout;
    for (let attempt = 1; attempt < SPECIFIED_RETRY.maxAttempts; attempt += 1) {
      const due = nextAttemptAt(SPECIFIED_RETRY, attempt, ended, Infinity) ?? NaN;
      expect(due - ended).toBeLessThanOrEqual(longestWaitMs(SPECIFIED_RETRY));
      ended = due + timeout;
    }
    expect(ended - start).toBeLessThanOrEqual(30 * 60_000);
  }
});

test('after the last attempt there is no next one, whatever the receiver asks for', () => {
  expect(nextAttemptAt(SPECIFIED_RETRY, SPECIFIED_RETRY.maxAttempts, at('12:00:20'), 60_000)).toBeNull();
});
