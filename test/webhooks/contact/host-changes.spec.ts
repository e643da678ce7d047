import { describe, expect, test } from '@jest/globals';
import type { FailingHost } from '../../../src/webhooks/contact/failing-host.entity.js';
import { afterAttempt, afterAttemptElsewhere, type HostAttempt } from '../../../src/webhooks/contact/host-changes.js';

const MINUTE = 60_000;
const at = { clientId: 'c', host: 'h' };
const success = (minute: number): HostAttempt => ({
  ...at,
  endedAt: minute * MINUTE,
  madeAt: minute * MINUTE,
  failure: null,
});
const failure = (minute: number, endedFailed = false): HostAttempt => ({
  ...at,
  endedAt: minute * MINUTE,
  madeAt: minute * MINUTE,
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
  alarmEndedAt: null,
  acknowledgedBy: null,
  acknowledgement: null,
  isRegisteredUrl: true,
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

test('a success before the last failure is no recovery, in whichever order they are recorded', () => {
  const failed = play([failure(1, true)]);
  expect(play([success(0.5)], failed)).toBe(failed);
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

describe('the alarm of a host', () => {
  const elsewhere = (minute: number, madeAt: number | null = minute): HostAttempt => ({
    ...success(minute),
    host: 'new',
    madeAt: madeAt === null ? null : madeAt * MINUTE,
  });
  const acknowledged = row({ alarmEndedAt: 5 * MINUTE, acknowledgedBy: 'operator:ada', acknowledgement: 'they know' });
  const isAlarming = ({ alarmEndedAt }: FailingHost): boolean => alarmEndedAt === null;

  test('ends when a notification that was made after the first failure reaches the new Notify URL', () => {
    expect(afterAttemptElsewhere(row(), elsewhere(3))).toMatchObject({ alarmEndedAt: 3 * MINUTE, recoveredAt: null });
  });

  const others: [what: string, before: FailingHost, attempt: HostAttempt][] = [
    ['a failure there', row(), { ...failure(3), host: 'new' }],
    ['a notification of before', row(), elsewhere(3, 0.5)],
    ['an order with a Notify URL of its own', row(), elsewhere(3, null)],
    ['a delivery before the last failure', row({ lastFailedAt: 4 * MINUTE }), elsewhere(3)],
    ['a delivery, if orders with Notify URLs of their own fail too', row({ isRegisteredUrl: false }), elsewhere(3)],
    ['a delivery, if that is not known', row({ isRegisteredUrl: null }), elsewhere(3)],
    ['a delivery, if somebody acknowledged it', acknowledged, elsewhere(6)],
  ];
  test.each(others)('is not changed by %s', (_what, before, attempt) => {
    expect(afterAttemptElsewhere(before, attempt)).toBe(before);
  });

  test('returns with the next notification that ends FAILED, not with a failed attempt or one of before', () => {
    expect(play([failure(6), failure(7), failure(4, true)], acknowledged)).toMatchObject({
      alarmEndedAt: 5 * MINUTE,
      acknowledgement: 'they know',
    });
    expect(play([failure(6, true)], acknowledged)).toMatchObject({
      alarmEndedAt: null,
      acknowledgedBy: null,
      acknowledgement: null,
    });
  });

  test('of a host knows whether an order’s own Notify URL failed there', () => {
    const own = { ...failure(1), madeAt: null };
    expect(play([failure(1)])?.isRegisteredUrl).toBe(true);
    expect(play([own, failure(3)])?.isRegisteredUrl).toBe(false);
    expect(play([failure(1), { ...own, endedAt: 9 * MINUTE }])?.isRegisteredUrl).toBe(false);
    expect(isAlarming(play([own])!)).toBe(true);
  });
});
