import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { promelaOf } from './promela.js';
import { TRANSITIONS } from './transitions.js';

test.each(TRANSITIONS.filter(({ code }) => code.startsWith('src/')).map(({ name, code }) => [name, code]))(
  'the transition %s names a function that exists',
  (_, code) => {
    const [file = '', name = ''] = code.split(' ');
    expect(readFileSync(file, 'utf8')).toMatch(new RegExp(`\\b${name}\\(`));
  },
);

test('a run without a rule differs from the whole model only in the lines of its transition', () => {
  const bounds = {
    notifications: 1,
    maxAttempts: 5,
    workers: 2,
    crashes: 0,
    lostJobs: 0,
    doubledJobs: 0,
    pauses: 0,
    areSlow: true,
    forgottenWrites: 0,
  };
  const lines = (text: string): Set<string> => new Set(text.split('\n'));
  const whole = lines(promelaOf(bounds));
  const changed = [...lines(promelaOf(bounds, 'claim.isDue'))].filter((line) => !whole.has(line));
  expect(changed).toHaveLength(2);
  for (const line of changed) expect(line).toContain('/* claim */');
});
