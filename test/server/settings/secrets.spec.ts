import { describe, expect, test } from '@jest/globals';
import { loadConfig } from '../../../src/server/settings/settings.js';
import fc from 'fast-check';
import { resolveOptions } from '../../../src/resolve-options.js';
import type { UsherOptions } from '../../../src/usher.options.js';
import { hidePassword } from '../../../src/values/start-up-error.js';
import type { Settings } from '../../support/backend.js';
import { faultsOf } from './faults.js';

describe('no secret appears in an error message:', () => {
  const secretive: Settings[] = [
    { USHER_MASTER_KEYS: 'k1:hunter2' },
    { OPS_USER: 'ops:hunter2', OPS_PASSWORD: 'hunter2' },
    { OPS_PASSWORD: 'hunter2' },
    { INTERNAL_USER: 'a:hunter2', INTERNAL_PASSWORD: 'hunter2' },
    { OPS_PASWORD: 'hunter2' },
    { DATABASE_URL: 'oracle://root:hunter2@h/usher' },
    { DATABASE_URL: 'root:hunter2@h/usher' },
    { DATABASE_URL: 'mysql:root:hunter2@h/usher' },
    { DATABASE_URL: 'mysql://root:hunter2\n@h /usher' },
    { DATABASE_URL: 'mysql://root:12/hunter2@h/usher' },
    { DATABASE_URL: 'mysql://root:12#hunter2@h/usher' },
    { DATABASE_URL: 'mysql://root:hunter2%@h/usher' },
    { DATABASE_URL: 'mysql://root:a@hunter2@h' },
    { DATABASE_URL: 'oracle://h/usher?user=x&password=hunter2' },
    { QUEUE_URL: 'amqp://:hunter2@h' },
    { QUEUE_URL: 'redis+sentinel://u:hunter2@h,/name' },
    { QUEUE_URL: 'amqp://h/name?sentinel_password=hunter2' },
    { WEBHOOK_PROXY: 'socks5://u:hunter2@proxy:1080' },
    { WEBHOOK_PROXY: 'u:hunter2@proxy:3128' },
    { WEBHOOK_PROXY: 'http://u:hunter2@proxy:3128/path' },
    { WEBHOOK_PROXY: 'http://u:12/hunter2@proxy' },
    { WEBHOOK_PROXY: 'http://u:12?hunter2@proxy' },
    { WEBHOOK_PROXY: 'http://u:12#hunter2@proxy' },
    { WEBHOOK_PROXY: 'http://u:hunter2%@proxy' },
    { WEBHOOK_PROXY: 'http://a%3Ab:hunter2@proxy' },
    { WEBHOOK_PROXY: 'http://u:hunter2@' },
    { USHER_AUTH_URL: 'ftp://u:hunter2@h' },
  ];
  test('a URL stays readable except for its password', () => {
    expect(hidePassword('mysql://root@h:3306/usher')).toBe('mysql://root@h:3306/usher');
    expect(hidePassword('mysql://root:pw@h:3306/usher')).toBe('mysql://root:***@h:3306/usher');
    expect(hidePassword('redis://h:6379')).toBe('redis://h:6379');
  });

  test.each(secretive)('%j', (settings) => {
    const faults = faultsOf({ QUEUE_URL: 'redis://h', ...settings });
    expect(faults).not.toEqual([]);
    expect(faults.join('\n')).not.toContain('hunter2');
  });
});

const PRODUCTION = {
  USHER_ENV: 'production',
  DATABASE_URL: 'mysql://usher:pw@db:3306/usher',
  QUEUE_URL: 'redis://queue:6379',
  TRUST_PROXY: '0',
  USHER_MASTER_KEYS: `k1:${Buffer.alloc(32, 1).toString('base64')}`,
};

test('production refuses passwords of fewer than 12 characters, and shows none of them', () => {
  const credentials = { OPS_USER: 'ops', INTERNAL_USER: 'internal' };
  const short = { OPS_PASSWORD: 'elevenchars', INTERNAL_PASSWORD: 'hunter2' };
  const faults = faultsOf({ ...PRODUCTION, ...credentials, ...short });
  expect(faults).toEqual([
    expect.stringMatching(/^OPS_PASSWORD is too short; production needs at least 12 characters/),
    expect.stringMatching(/^INTERNAL_PASSWORD is too short; production needs at least 12 characters/),
  ]);
  expect(faults.join()).not.toMatch(/elevenchars|hunter2/);
  loadConfig({ ...PRODUCTION, ...credentials, OPS_PASSWORD: 'twelve chars', INTERNAL_PASSWORD: 'twelve chars' });
  loadConfig({ ...PRODUCTION, ...credentials, ...short, USHER_ENV: 'sandbox' });
});

/** URLs with a password, as people write them and with any kind of error: characters that need %, missing parts, typos. */
const faultyUrl = fc
  .record({
    scheme: fc.constantFrom(
      'mysql://',
      'postgres://',
      'redis://',
      'http://',
      'oracle://',
      'mysql:',
      'redis:/',
      'mysql//',
      '',
    ),
    user: fc.constantFrom('', 'u', 'u%', 'a@b', 'u:', 'u%3a'),
    before: fc.string({ maxLength: 4, unit: fc.constantFrom(...' 1a%@:/?#[]\\&=\n\t') }),
    after: fc.string({ maxLength: 4, unit: fc.constantFrom(...' 1a%@:/?#[]\\&=\n\t') }),
    end: fc.constantFrom(
      '@h/usher',
      '@h:3306/usher',
      '@h',
      '@',
      '',
      '@h/1',
      '/usher',
      '@h/usher?x=1',
      '@h?ssl-mode=x',
      ':3306/u',
    ),
  })
  .map(({ scheme, user, before, after, end }) => `${scheme}${user}:${before}hunter2${after}${end}`);

const SERVER: Settings = { OPS_USER: 'o', OPS_PASSWORD: 'p'.repeat(12), USHER_MASTER_KEYS: 'k1:x', TRUST_PROXY: '0' };

function optionFaults(options: UsherOptions): string {
  try {
    resolveOptions(options);
  } catch (error) {
    return String(error);
  }
  return '';
}

describe('whatever is wrong with a URL, its password is in no message:', () => {
  test.each(['DATABASE_URL', 'QUEUE_URL', 'WEBHOOK_PROXY', 'USHER_AUTH_URL'])('the setting %s', (name) => {
    fc.assert(
      fc.property(faultyUrl, (url) => {
        const settings = { DATABASE_URL: 'mysql://h/u', QUEUE_URL: 'redis://h', ...SERVER, [name]: url };
        expect(faultsOf(settings).join('\n')).not.toMatch(/hunter/);
      }),
      { numRuns: 3_000 },
    );
  });

  test('the options of the library', () => {
    fc.assert(
      fc.property(faultyUrl, (url) => {
        const options = { environment: 'sandbox', database: { url }, queue: { url }, publicUrl: url, proxy: url };
        expect(optionFaults(options as UsherOptions)).not.toMatch(/hunter/);
      }),
      { numRuns: 3_000 },
    );
  });
});
