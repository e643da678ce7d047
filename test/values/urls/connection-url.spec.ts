import { describe, expect, test } from '@jest/globals';
import {
  connectionUrlFault,
  isUnencrypted,
  parseConnectionUrl,
  SentinelUrl,
} from '../../../src/values/urls/connection-url.js';
import { hidePassword } from '../../../src/values/start-up-error.js';

function parsed(text: string) {
  const url = parseConnectionUrl(text);
  if (!(url instanceof SentinelUrl)) throw new Error(`${text} is not read as the URL of Sentinels`);
  const { sentinels, group, database, username, password } = url;
  return { sentinels: sentinels.map(({ host, port }) => `${host} ${port}`), group, database, username, password };
}

describe('the URL of Sentinels', () => {
  test('names hosts with ports, the primary, a database, and the credentials of Redis', () => {
    expect(parsed('redis+sentinel://user:p%40ss@one:26379,two:26380/cinema/3?sentinel_password=x')).toEqual({
      sentinels: ['one 26379', 'two 26380'],
      group: 'cinema',
      database: '3',
      username: 'user',
      password: 'p%40ss',
    });
  });

  test('has 26379 as its default port, and may name one host or IPv6 addresses', () => {
    expect(parsed('rediss+sentinel://one/cinema').sentinels).toEqual(['one 26379']);
    expect(parsed('redis+sentinel://[::1],[fe80::2]:7/cinema').sentinels).toEqual(['::1 26379', 'fe80::2 7']);
  });

  test('is shown with all hosts and without its passwords', () => {
    const text = 'redis+sentinel://user:hunter2@one:26379,two:26379/cinema?sentinel_password=hunter3';
    expect(hidePassword(String(parseConnectionUrl(text)))).toBe(
      'redis+sentinel://user:***@one:26379,two:26379/cinema?sentinel_password=***',
    );
  });

  test.each([
    ['redis+sentinel://10.0.0.1,10.0.0.2/cinema', true],
    ['rediss+sentinel://10.0.0.1,10.0.0.2/cinema', false],
    ['redis+sentinel://127.0.0.1/cinema', false],
  ])('%s crosses a network without encryption: %s', (text, expected) => {
    expect(isUnencrypted(parseConnectionUrl(text) as URL)).toBe(expected);
  });

  test.each([['redis+sentinel://h,/name'], ['redis+sentinel://h:26379,h:x/name'], ['redis+sentinel:///name']])(
    '%s is not read as a URL',
    (text) => expect(parseConnectionUrl(text)).toBeNull(),
  );

  test.each([
    ['redis+sentinel://h,h', 'the name of the primary is missing'],
    ['redis+sentinel://h,h/name/abc', 'a Redis database is a number'],
    [
      'redis+sentinel://h,h/name?tls=true',
      'a parameter after ? is not one of Sentinel URLs; use sentinel_username, sentinel_password',
    ],
    ['redis://h/name', 'a Redis database is a number'],
  ])('%s is refused: %s', (text, fault) => {
    expect(connectionUrlFault('redis', parseConnectionUrl(text) as URL)).toContain(fault);
  });
});
