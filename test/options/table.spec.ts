import { describe, expect, test } from '@jest/globals';
import type { Option } from '../../src/options/option-kinds.js';
import { OPTIONS } from '../../src/options/option-table.js';
import { resolveOptions } from '../../src/resolve-options.js';
import { SETTINGS } from '../../src/server/settings/server-options.js';
import { loadConfig } from '../../src/server/settings/settings.js';
import type { UsherOptions } from '../../src/usher.options.js';
import { parseDuration } from '../../src/values/duration.js';
import { optionFaults, options, optionsWith, variableFaults, VARIABLES } from './given.js';

const ALL = Object.values<Option>(OPTIONS);
const named = ({ option, variable }: Option): string => `${option} (${variable})`;
const SHARED = ALL.filter(({ variable }) => variable !== null).map((option) => [named(option), option] as const);

/** A fault without what differs: the name, the value, and how each side writes a duration. */
const sentence = (fault: string): string =>
  fault
    .replace(/^[\w.]+/, '')
    .replace(/^=[^]*?(?= is invalid)/, '')
    .replace(/, (like 500ms, 30s, 2m, 24h or 60d|in whole milliseconds)$/, '');

/** No option has one of these values, except that flags are true or false. */
const JUNK: [shown: string, value: unknown][] = [
  ['NaN', NaN],
  ['Infinity', Infinity],
  ['a negative number', -1],
  ['a fraction', 1.5],
  ['a huge number', 1e300],
  ['a bigint', 10n],
  ['null', null],
  ['true', true],
  ['an empty text', ''],
  ['an array', []],
  ['an array with the default', ['30s']],
  ['an object', {}],
  ['an object without a prototype', Object.create(null)],
  ['a function', () => 1],
  ['a symbol', Symbol('value')],
  ['a date', new Date(0)],
];

describe.each(SHARED)('%s', (_, entry) => {
  const { option, variable, kind } = entry as Option & { option: string; variable: string };
  const invalid = ` is invalid; use ${kind.wanted}`;

  test.each(JUNK)('refuses %s, in a sentence', (_, value) => {
    if (kind.wanted === 'true or false' && value === true) return;
    const faults = optionFaults(optionsWith(option, value));
    expect(faults.map(sentence)).toEqual([invalid]);
    expect(faults[0]).toMatch(new RegExp(`^${option.replace('.', '\\.')}\\b`));
  });

  test('refuses a text in the same sentence in the environment and in the library', () => {
    if (option === 'internal.password') return; // Any text is a password.
    const text = option === 'internal.user' ? ':' : '!';
    const faults = variableFaults({ [variable]: text });
    expect(faults.map(sentence)).toEqual([invalid]);
    expect(faults[0]).toMatch(new RegExp(`^${variable}\\b`));
    expect(optionFaults(optionsWith(option, text)).map(sentence)).toEqual([invalid]);
  });

  test('counts an empty variable as absent', () => {
    const required = variable in VARIABLES;
    if (!required) expect(loadConfig({ ...VARIABLES, [variable]: '' })).toEqual(loadConfig(VARIABLES));
  });

  const [, least, most] = /from (\w+) to (\w+)/.exec(kind.wanted) ?? [];
  if (least === undefined || most === undefined) return;
  const number = (text: string): number => parseDuration(text) ?? Number(text);
  const changed = (text: string, by: number): string => text.replace(/\d+/, (digits) => String(Number(digits) + by));

  test.each([changed(least, -1), changed(most, 1)])('refuses %s, outside its bounds, in the same sentence', (value) => {
    expect(optionFaults(optionsWith(option, number(value))).map(sentence)).toEqual([invalid]);
    expect(variableFaults({ [variable]: value }).map(sentence)).toEqual([invalid]);
  });

  test.each([number(least) - 1, number(most) + 1])('refuses %d in the library', (value) => {
    expect(optionFaults(optionsWith(option, value)).map(sentence)).toEqual([invalid]);
  });

  test.each([least, most])('accepts %s, at its bounds', (value) => {
    const resolved = resolveOptions(optionsWith(option, number(value)) as unknown as UsherOptions);
    expect(loadConfig({ ...VARIABLES, [variable]: value })).toMatchObject({
      ...resolved,
      names: {},
      actor: {},
      guidesUrl: '/docs',
    });
    const seconds = option.startsWith('lifetimes') ? 1_000 : 1;
    expect(JSON.stringify(resolved)).toContain(String(number(value) / seconds));
  });
});

test('every default is valid, and the library has the same as the server', () => {
  for (const { kind, default: fallback, local } of Object.values<Option>(SETTINGS))
    for (const text of [fallback, local?.default ?? null])
      if (text !== null) expect([text, kind.check(kind.parse ? kind.parse(text) : text)]).not.toContain(undefined);
  expect(loadConfig(VARIABLES)).toMatchObject({
    ...resolveOptions(options() as unknown as UsherOptions),
    names: { concurrency: 'WEBHOOK_CONCURRENCY' },
    actor: { name: 'system' },
    guidesUrl: '/docs',
  });
});

test('every duration of the library is in milliseconds, and its name says so', () => {
  for (const { option, kind } of ALL)
    expect([option, kind.wanted.startsWith('a duration')]).toEqual([option, /Ms$/.test(String(option))]);
});

test.each<[option: string, given: object, variables: Record<string, string> | null, wanted: string]>([
  [
    'concurrency',
    { concurrency: 1e9 },
    { WEBHOOK_CONCURRENCY: '1000000000' },
    ' is invalid; use a whole number from 1 to 10000',
  ],
  [
    '20 years',
    { retentionMs: 20 * 365 * 86_400_000 },
    { WEBHOOK_RETENTION: '7300d' },
    ' is invalid; use a duration from 1d to 3650d',
  ],
  [
    'pool',
    { database: { url: 'embedded:./data', pool: -3 } },
    { DATABASE_POOL: '-3' },
    ' is invalid; use a whole number from 1 to 1000',
  ],
  [
    'prefix',
    { queue: { prefix: 'a b:c' } },
    { QUEUE_PREFIX: 'a b:c' },
    ' is invalid; use up to 40 letters, digits, - or _, starting with a letter',
  ],
  [
    '120 days',
    { retry: { retryEveryMs: 120 * 86_400_000 } },
    { WEBHOOK_RETRY_EVERY: '120d' },
    ' is invalid; use a duration from 100ms to 24d',
  ],
  ['a user without a password', { internal: { user: 'orders' } }, { INTERNAL_PASSWORD: '' }, ' must be set: '],
  ['deliver', { deliver: 'false' }, null, ' is invalid; use true or false'],
])('%s', (_, given, variables, wanted) => {
  const [fault = '', ...others] = optionFaults({ ...options(), ...given });
  expect([sentence(fault), ...others]).toEqual([expect.stringContaining(wanted)]);
  if (variables !== null) expect(variableFaults(variables).map(sentence)).toEqual([expect.stringContaining(wanted)]);
});
