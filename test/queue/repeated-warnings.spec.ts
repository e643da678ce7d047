import { expect, test } from '@jest/globals';
import { RepeatedWarnings } from '../../src/queue/repeated-warnings.js';

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
