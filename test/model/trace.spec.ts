import { expect, test } from '@jest/globals';
import { SPECIFIED_RETRY } from '../../src/values/retry-schedule.js';
import { firstFault, type Row, type Step } from './trace.js';

const { retryEveryMs: EVERY, minIntervalMs: MIN_INTERVAL } = SPECIFIED_RETRY;
/** A retry run, and each next one. */
const RUN = 1_000 * EVERY;
const row = (status: string, attempts: number, due: number | null): Row => ({ status, attempts, due });
const attempt = (number: number, startedAt: number, durationMs: number | null = null, wasOk = false) => ({
  attempt: { number, startedAt, durationMs, wasOk },
});

/** A notification that is recorded at a retry run, and whose attempts fail at the next ones. */
function failing(attempts: number): Step[] {
  const steps: Step[] = [{ at: RUN, row: { before: null, after: row('PENDING', 0, RUN) } }];
  for (let number = 1; number <= attempts; number += 1) {
    const at = RUN + (number - 1) * EVERY;
    const claimed = row('PENDING', number, at + EVERY);
    const failed = number === 5 ? row('FAILED', 5, null) : row('PENDING', number, at + EVERY);
    steps.push(
      { at, row: { before: row('PENDING', number - 1, at), after: claimed }, ...attempt(number, at) },
      { at: at + 1, sent: number },
      { at: at + 2, row: { before: claimed, after: failed }, ...attempt(number, at, 1) },
    );
  }
  return steps;
}

/** The steps of one attempt that succeeds. */
function delivered(): Step[] {
  const steps = failing(1);
  const claimed = row('PENDING', 1, RUN + EVERY);
  steps[3] = { at: RUN + 2, row: { before: claimed, after: row('SUCCESS', 1, null) }, ...attempt(1, RUN, 1, true) };
  return steps;
}

const claim = (number: number, at: number, due: number): Step => ({
  at,
  row: { before: row('PENDING', number - 1, at), after: row('PENDING', number, due) },
  ...attempt(number, at),
});
const whyOf = (steps: Step[]) => firstFault(steps, SPECIFIED_RETRY);

test('five failed attempts, a success, and a failure that is recorded after its lease ended are known', () => {
  expect(whyOf(failing(5))).toBeNull();
  expect(whyOf(delivered())).toBeNull();
  const late = [...failing(1).slice(0, 3), claim(2, RUN + EVERY, RUN + 2 * EVERY)];
  const [recorded, claimed, sent] = failing(1) as [Step, Step, Step];
  expect(whyOf([recorded, claimed, sent, { at: RUN + 2, ...attempt(1, RUN, 1) }])).toBeNull();
  expect(whyOf([...late, { at: RUN + EVERY + 1, ...attempt(1, RUN, 40_000) }])).toBeNull();
});

test('the next attempt may be one run later if a worker computes an end of the last one that is later than its recording', () => {
  const recordedAt = RUN + EVERY - MIN_INTERVAL - 100;
  const failed = (due: number): Step => ({
    at: recordedAt,
    row: { before: row('PENDING', 1, RUN + EVERY), after: row('PENDING', 1, due) },
    ...attempt(1, RUN, recordedAt - RUN),
  });
  const claimed = failing(1).slice(0, 3);
  // A receiver may ask for the second run after the usual one.
  expect(whyOf([...claimed, failed(RUN + 4 * EVERY)])).toBeNull();
  expect(whyOf([...claimed, failed(RUN + 5 * EVERY)])).not.toBeNull();
});

test.each<[string, Step[], string]>([
  [
    'an attempt that begins before the lease of another one has ended',
    [...failing(1).slice(0, 3), claim(2, RUN + 60_000, RUN + 2 * EVERY)],
    'the rule isDue does not hold',
  ],
  ['a claim before the row is due', [...failing(1), claim(2, RUN + 60_000, RUN + 2 * EVERY)], 'the rule isDue'],
  [
    'a claim whose lease is too short',
    [...failing(1), claim(2, RUN + EVERY, RUN + EVERY + 60_000)],
    'no transition of the table makes this change',
  ],
  [
    'a sixth attempt',
    [...failing(5).slice(0, -1), claim(6, RUN + 5 * EVERY, RUN + 6 * EVERY)],
    'the rule hasAttempts does not hold',
  ],
  [
    'an attempt after SUCCESS',
    [
      ...delivered(),
      {
        at: RUN + EVERY,
        row: { before: row('SUCCESS', 1, null), after: row('SUCCESS', 2, RUN + 2 * EVERY) },
        ...attempt(2, RUN + EVERY),
      },
    ],
    'no transition of the table makes this change',
  ],
  ['a request after SUCCESS', [...delivered(), { at: RUN + EVERY, sent: 1 }], 'no transition'],
  [
    'a request within the minimum interval of another one',
    [
      ...failing(1).slice(0, 2),
      { at: RUN + EVERY - 20_000, sent: 1 },
      claim(2, RUN + EVERY, RUN + 2 * EVERY),
      { at: RUN + EVERY + 1, sent: 2 },
    ],
    'two requests within the minimum interval',
  ],
  [
    'a failure of an earlier attempt that changes the row',
    [
      ...failing(1).slice(0, 3),
      claim(2, RUN + EVERY, RUN + 2 * EVERY),
      {
        at: RUN + EVERY + 1,
        row: { before: row('PENDING', 2, RUN + 2 * EVERY), after: row('PENDING', 2, RUN + 3 * EVERY) },
        ...attempt(1, RUN, 40_000),
      },
    ],
    'the rule isMine does not hold',
  ],
  [
    'FAILED before the fifth attempt',
    [...failing(4), { at: RUN + 9 * EVERY, row: { before: row('PENDING', 4, 0), after: row('FAILED', 4, null) } }],
    'the rule isExhausted does not hold',
  ],
  [
    'a change of the row after its end',
    [...failing(5), { at: RUN + 9 * EVERY, row: { before: row('FAILED', 5, null), after: row('PENDING', 5, RUN) } }],
    'no transition of the table makes this change',
  ],
])('the traces find %s', (_, steps, why) => {
  const fault = whyOf(steps);
  expect(fault?.why).toContain(why);
  expect(fault?.index).toBe(steps.length - 1);
});
