import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { socketTimeoutMs } from '../../src/database/data-source-options.js';
import type { Option } from '../../src/options/option-kinds.js';
import { OPTIONS } from '../../src/options/option-table.js';
import { resolveOptions, UsherOptionsError } from '../../src/resolve-options.js';
import type { UsherOptions } from '../../src/usher.options.js';
import { SPECIFIED_RETRY } from '../../src/values/retry-schedule.js';
import { optionFaults, options, optionsWith, variableFaults } from './given.js';

const ALL = Object.values<Option>(OPTIONS);

describe('rules of several options have the same sentence', () => {
  test.each<[given: object, fault: string, variables: Record<string, string>]>([
    [{ masterKeys: undefined }, 'masterKeys must be set with a database server: ', { USHER_MASTER_KEYS: '' }],
    [
      { database: { url: 'mysql://h/usher' } },
      'queue.url must be set: a URL like redis:',
      { DATABASE_URL: 'mysql://h/usher' },
    ],
    [
      { internal: { user: 'orders', password: undefined } },
      'internal.password must be set: internal.user needs it',
      { INTERNAL_PASSWORD: '' },
    ],
    [
      { contactMessages: { smtpUrl: undefined, from: 'usher@cinema.example' } },
      'contactMessages.smtpUrl must be set: contactMessages.from needs it',
      { SMTP_URL: '' },
    ],
    ...(
      [
        ['timeoutMs', 29_999, '30s', { WEBHOOK_TIMEOUT: '29999ms' }],
        ['retryEveryMs', 60_000, '2m', { WEBHOOK_RETRY_EVERY: '1m' }],
        ['minIntervalMs', 0, '30s', { WEBHOOK_RETRY_MIN_INTERVAL: '0s' }],
        ['maxAttempts', 4, '5', { WEBHOOK_MAX_ATTEMPTS: '4' }],
      ] as const
    ).map(([name, value, kept, variables]): [object, string, Record<string, string>] => [
      { environment: 'production', retry: { [name]: value } },
      `retry.${name}: production keeps the specified ${kept}; leave it out`,
      { USHER_ENV: 'production', TRUST_PROXY: '0', ...variables },
    ]),
    [
      { environment: 'production', notifyUrls: { allowPrivate: true } },
      'notifyUrls.allowPrivate: production never delivers to private addresses; leave it out',
      { USHER_ENV: 'production', TRUST_PROXY: '0', WEBHOOK_ALLOW_PRIVATE_HOSTS: 'true' },
    ],
    [
      { environment: 'production', publicUrl: 'http://auth.example' },
      'publicUrl: production needs https://',
      { USHER_ENV: 'production', TRUST_PROXY: '0', USHER_AUTH_URL: 'http://auth.example' },
    ],
    [
      { environment: 'production', internal: { user: 'orders', password: 'short' } },
      'internal.password is too short; production needs at least 12 characters',
      { USHER_ENV: 'production', TRUST_PROXY: '0', INTERNAL_PASSWORD: 'short' },
    ],
    [
      { environment: 'production', database: { url: 'embedded:./data' } },
      'database.url: production needs mysql:// or postgres://',
      { USHER_ENV: 'production', TRUST_PROXY: '0', DATABASE_URL: 'embedded:./data' },
    ],
  ])('%j', (given, wanted, variables) => {
    const faults = optionFaults({ ...options(), ...given });
    expect(faults).toEqual([expect.stringContaining(wanted)]);
    const variableOf = Object.fromEntries(ALL.map(({ option, variable }) => [option, variable]));
    const inNamesOfTheServer = faults.map((fault) =>
      fault.replace(/[a-z]+(\.[a-z]+)?\b/gi, (name) => variableOf[name] ?? name),
    );
    expect(variableFaults(variables)).toEqual(inNamesOfTheServer);
  });
});

describe('the library names every name that it does not know', () => {
  test.each<[given: object, wanted: string]>([
    [{ limit: { tokens: 'off' } }, 'limit is not a setting; did you mean limits?'],
    [{ masterKey: 'k1:x' }, 'masterKey is not a setting; did you mean masterKeys?'],
    [{ limits: { token: 'off' } }, 'limits.token is not a setting; did you mean limits.tokens?'],
    [
      { lifetimes: { accessToken: 60 } },
      'lifetimes.accessToken is not a setting; did you mean lifetimes.accessTokenMs?',
    ],
    [
      { retry: { send: () => 1 } },
      'retry.send is not a setting; use one of timeoutMs, retryEveryMs, minIntervalMs, maxAttempts',
    ],
    [JSON.parse('{ "__proto__": { "deliver": false } }') as object, '__proto__ is not a setting; use one of '],
    [{ constructor: 1 }, 'constructor is not a setting; use one of '],
    [{ retry: 5 }, 'retry=5 is invalid; use an object with timeoutMs, retryEveryMs, minIntervalMs, maxAttempts'],
    [{ retry: null }, 'retry=null is invalid; use an object with timeoutMs'],
    [{ limits: ['600/m'] }, 'limits=[object Array] is invalid; use an object with authFailures'],
    [{ internal: {} }, 'internal.user must be set: a user name'],
    [{ contactMessages: {} }, 'contactMessages.smtpUrl must be set: a URL like smtp:'],
    [
      { resourceOwners: { currentOwner: () => null } },
      'resourceOwners=[object Object] is invalid; use an object with the methods',
    ],
    [{ database: { dataSource: null } }, 'database.dataSource=null is invalid; use a DataSource'],
  ])('%j', (given, wanted) => {
    // A spread would not keep a key "__proto__".
    const all = Object.defineProperties(options(), Object.getOwnPropertyDescriptors(given));
    expect(optionFaults(all)).toEqual([expect.stringContaining(wanted)]);
  });

  test.each([undefined, null, 5, 'options', [], () => 1])('options that are %p', (given) => {
    expect(optionFaults(given)[0]).toMatch(/^options=.* is invalid; use an object with environment, /);
  });
});

test('the library finds options in the getters of a class', () => {
  class Options {
    environment = 'sandbox' as const;
    database = { url: 'embedded:./data' };
    get concurrency(): number {
      return 7;
    }
  }
  expect(resolveOptions(new Options()).concurrency).toBe(7);
});

test('a data source that was not injected is named', () => {
  expect(optionFaults({ ...options(), database: { dataSource: undefined } })).toContainEqual(
    expect.stringMatching(/^database\.url must be set, because database\.dataSource is undefined: /),
  );
});

test('a data source of the application is used as it is', () => {
  const dataSource = { options: { type: 'postgres' } };
  const given = { ...options(), database: { dataSource } };
  expect(resolveOptions(given as unknown as UsherOptions).database).toEqual({ kind: 'host', dataSource });
  expect(optionFaults({ ...given, database: { dataSource, pool: 5 } })).toEqual([
    'database.dataSource is used as it is; leave out url, pool, migrationTable, timeoutMs and join',
  ]);
});

test('currentManager without a data source of the application is refused', () => {
  expect(optionFaults({ ...options(), currentManager: () => undefined })).toEqual([
    'currentManager needs database.dataSource; pass that DataSource, or leave currentManager out',
  ]);
});

test('whatever an application gives, it is accepted or refused in words', () => {
  const anything = fc.anything({
    withBigInt: true,
    withDate: true,
    withMap: true,
    withNullPrototype: true,
    withSparseArray: true,
  });
  const paths = [
    ...ALL.map(({ option }) => String(option)),
    'retry',
    'limits',
    'database',
    'queue',
    'internal',
    'contactMessages',
    'x',
  ];
  fc.assert(
    fc.property(fc.constantFrom(...paths), anything, (path, value) => {
      try {
        resolveOptions(optionsWith(path, value) as unknown as UsherOptions);
      } catch (error) {
        expect(error).toBeInstanceOf(UsherOptionsError);
      }
    }),
    { numRuns: 2_000 },
  );
});

test('the longest timeout of an attempt overflows no timer, though a database connection waits twice as long', () => {
  const timeoutMs = 24 * 86_400_000;
  expect(optionFaults(optionsWith('retry.timeoutMs', timeoutMs))).toEqual([]);
  const retry = { ...SPECIFIED_RETRY, timeoutMs };
  expect(socketTimeoutMs({ retry, databaseTimeoutMs: 10_000 })).toBeLessThan(2 ** 31);
});

test('the longest statement ends before its connection counts as lost', () => {
  const databaseTimeoutMs = 600_000;
  expect(optionFaults(optionsWith('database.timeoutMs', databaseTimeoutMs))).toEqual([]);
  expect(socketTimeoutMs({ retry: SPECIFIED_RETRY, databaseTimeoutMs })).toBeGreaterThan(databaseTimeoutMs);
});
