import { describe, expect, test } from '@jest/globals';
import type { FailingHost } from '../../../src/webhooks/contact/failing-host.entity.js';
import { afterAttempt, type HostAttempt } from '../../../src/webhooks/contact/host-changes.js';

const MINUTE = 60_000;
const at = { clientId: 'c', host: 'h' };
const success = (minute: number): HostAttempt => ({ ...at, endedAt: minute * MINUTE, failure: null });
const failure = (minute: number, endedFailed = false): HostAttempt => ({
  ...at,
  endedAt: minute * MINUTE,
  failure: { error: `error ${minute}`, diagnosis: 'not-found', endedFailed },
});

const play = (attempts: HostAttempt[], from: FailingHost | null = null): FailingHost | null =>
  attempts.reduce<FailingHost | null>(afterAttempt, from);

const row = (more: Partial<FailingHost> = {}): FailingHost => ({
  ...at,
  failingSince: MINUTE,
  lastFailedAt: MINUTE,
  lastError: 'error 1',
  lastDiagnosis: 'connection-refused',
  firstEndedFailedAt: null,
  recoveredAt: null,
  announcedAt: null,
  messageDueAt: null,
  ...more,
});

describe('a message becomes due', () => {
  const cases: [when: string, attempts: HostAttempt[], dueAt: number | null][] = [
    ['never by successes', [success(1), success(2)], null],
    ['not with a first failure', [failure(1)], null],
    ['not within ten minutes of failures', [failure(1), failure(5), failure(10.9)], null],
    ['with a failure ten minutes after the first one', [failure(1), failure(5), failure(11)], 11],
    ['with the first notification that ends FAILED', [failure(1), failure(3, true), failure(20)], 3],
    ['not if a success came in between', [failure(1), success(6), failure(12)], null],
    ['with the recovery of what ended FAILED', [failure(1, true), success(4)], 4],
  ];
  test.each(cases)('%s', (_when, attempts, dueAt) => {
    expect(play(attempts)?.messageDueAt ?? null).toBe(dueAt === null ? null : dueAt * MINUTE);
  });
});

describe('after the contact was told', () => {
  const announced = row({ announcedAt: 20 * MINUTE, firstEndedFailedAt: 8 * MINUTE });

  test('further failures make no message due', () => {
    expect(play([failure(30, true), failure(50)], announced)).toMatchObject({
      messageDueAt: null,
      announcedAt: 20 * MINUTE,
    });
  });
  test('a success is a recovery to tell', () => {
    expect(play([success(30), success(31)], announced)).toMatchObject({
      recoveredAt: 30 * MINUTE,
      messageDueAt: 30 * MINUTE,
    });
  });
  test('a failure before the recovery was told takes it back', () => {
    expect(play([success(30), failure(31)], announced)).toMatchObject({ recoveredAt: null, messageDueAt: null });
  });
});

test('a short disturbance is forgotten, and a recovery during which a message may be under way is kept', () => {
  expect(play([failure(1), success(2)])).toBeNull();
  expect(play([success(12)], row({ messageDueAt: 11 * MINUTE }))).toMatchObject({ recoveredAt: 12 * MINUTE });
});

test('failures within a minute of the last one that was written change nothing', () => {
  const known = row();
  expect(play([failure(1.5)], known)).toBe(known);
  expect(play([failure(2)], known)).toMatchObject({
    lastFailedAt: 2 * MINUTE,
    lastError: 'error 2',
    lastDiagnosis: 'not-found',
    failingSince: MINUTE,
  });
});

test('applying an attempt twice is applying it once', () => {
  for (const attempts of [
    [failure(1)],
    [failure(1, true)],
    [failure(1, true), success(2)],
    [failure(1), failure(12)],
  ]) {
    const once = play(attempts);
    expect(play(attempts.slice(-1), once)).toBe(once);
  }
});
