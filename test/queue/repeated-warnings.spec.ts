import { expect, test } from '@jest/globals';
import { RepeatedWarnings } from '../../src/queue/repeated-warnings.js';

test('a warning about another job or webhook is a repetition, and Sentinels that answer are not called unreachable', () => {
  const lines: string[] = [];
  const warnings = new RepeatedWarnings({ warn: (line: string) => void lines.push(line) }, () => 0);
  for (let n = 0; n < 800; n += 1) warnings.warn(`Missing key for job s${n}. moveToFinished`);
  for (let n = 0; n < 64; n += 1) warnings.warn(`webhook s${n} waits for the retry run: OOM`);
  const unreachable = 'All sentinels are unreachable.';
  for (const ms of [100, 200]) warnings.warn(`queue: ${unreachable} Retrying from scratch after ${ms}ms.`);
  warnings.warn(`${unreachable} Retrying from scratch after 100ms. Last error: connect ECONNREFUSED 192.0.2.1:6379`);
  expect(lines).toEqual([
    'Missing key for job s0. moveToFinished',
    'webhook s0 waits for the retry run: OOM',
    'queue: no Sentinel leads to a primary.',
    'no Sentinel leads to a primary. Last error: connect ECONNREFUSED 192.0.2.1:6379',
  ]);
});

test('a warning is logged at once, then once a minute with the number of its repetitions', () => {
  const lines: string[] = [];
  let now = 0;
  const warnings = new RepeatedWarnings({ warn: (line: string) => void lines.push(line) }, () => now);
  for (let n = 0; n < 40; n += 1) warnings.warn('READONLY');
  warnings.warn('another one');
  expect(lines).toEqual(['READONLY', 'another one']);
  now = 60_000;
  warnings.warn('READONLY');
  warnings.warn('READONLY');
  expect(lines).toEqual(['READONLY', 'another one', 'READONLY (repeated 39 times)']);
});
