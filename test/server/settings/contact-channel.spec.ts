import { describe, expect, test } from '@jest/globals';
import { resolveOptions, UsherOptionsError } from '../../../src/resolve-options.js';
import { loadConfig } from '../../../src/server/settings/settings.js';
import type { UsherOptions } from '../../../src/usher.options.js';
import { faultsOf } from './faults.js';

const FROM = { SMTP_FROM: 'usher@cinema.example' };
const MASTER_KEYS = `k1:${Buffer.alloc(32, 1).toString('base64')}`;
const options = (more: Partial<UsherOptions>): UsherOptions => ({
  environment: 'production',
  masterKeys: MASTER_KEYS,
  database: { url: 'postgres://usher:pw@db/usher' },
  ...more,
});

describe('contacts are told', () => {
  test('by a file in a sandbox, and not at all in production, unless something is set', () => {
    expect(loadConfig({}).contactMessages).toEqual({ kind: 'file' });
    expect(resolveOptions(options({})).contactMessages).toBeNull();
  });

  test.each(['smtp://mail.example', 'smtps://us%20er:p%2Fw@mail.example:465', 'smtp://[::1]:25/'])('by %s', (url) => {
    const smtp = { kind: 'smtp', url: new URL(url), from: FROM.SMTP_FROM };
    expect(loadConfig({ SMTP_URL: url, ...FROM }).contactMessages).toEqual(smtp);
    const contactMessages = { smtpUrl: url, from: FROM.SMTP_FROM };
    expect(resolveOptions(options({ contactMessages })).contactMessages).toEqual(smtp);
  });

  test('by a sender of the application', () => {
    const contactMessages = { send: () => Promise.resolve() };
    expect(resolveOptions(options({ contactMessages })).contactMessages).toBe(contactMessages);
  });
});

describe('a mail server is refused, without showing its password,', () => {
  test.each([
    ['mail.hunter2.example', /^SMTP_URL is invalid; use a URL like smtp:/],
    ['http://user:hunter2@mail.example', /^SMTP_URL is invalid/],
    ['smtp://user:hunter2@mail.example/path', /^SMTP_URL: it has a path or query/],
    ['smtp://user:hunt?er2@mail.example', /^SMTP_URL (is invalid|has a path)/],
    ['smtp://user:hunter2%@mail.example', /^SMTP_URL is invalid; use %25/],
    ['smtp://hunter2@mail.example', /^SMTP_URL has only one of user and password/],
  ])('%s', (url, wanted) => {
    const faults = faultsOf({ SMTP_URL: url, ...FROM });
    expect(faults).toEqual([expect.stringMatching(wanted)]);
    expect(faults.join()).not.toContain('hunter2');
    const contactMessages = { smtpUrl: url, from: FROM.SMTP_FROM };
    expect(() => resolveOptions(options({ contactMessages }))).toThrow(UsherOptionsError);
  });

  test('if one of the two settings is missing, or the sender is no address', () => {
    expect(faultsOf(FROM)).toEqual([expect.stringMatching(/^SMTP_URL must be set: SMTP_FROM needs it/)]);
    const SMTP_URL = 'smtp://mail.example';
    expect(faultsOf({ SMTP_URL })).toEqual([expect.stringMatching(/^SMTP_FROM must be set: SMTP_URL needs it/)]);
    for (const from of ['cinema', 'a@b.example, c@d.example', 'A\r\nBcc: x@y.example <a@b.example>'])
      expect(faultsOf({ SMTP_URL, SMTP_FROM: from })).toEqual([expect.stringMatching(/^SMTP_FROM=.* is invalid; use/)]);
    expect(faultsOf({ SMTP_URL, SMTP_FROM: 'Cinema Tickets <usher@cinema.example>' })).toEqual([]);
  });
});
