import { describe, expect, test } from '@jest/globals';
import { addressGroup } from '../../../src/http/exchange.js';
import { bodyEncoding } from '../../../src/http/oauth-route.js';
import { parseTrustedProxies } from '../../../src/options/option-kinds.js';
import { loadConfig } from '../../../src/server/settings/settings.js';
import { parseRate } from '../../../src/values/duration.js';

test.each([
  ['20/s', { count: 20, seconds: 1 }],
  ['600/m', { count: 600, seconds: 60 }],
  ['5/h', { count: 5, seconds: 3_600 }],
  ...['0/m', '-1/m', '1.5/m', '5/d', '5', '/m', '5 / m', 'off', ''].map((text) => [text, null] as const),
])('the rate %j is parsed as %j', (text, rate) => expect(parseRate(text)).toEqual(rate));

test.each([
  ['192.0.2.7', '192.0.2.7'],
  ['::ffff:192.0.2.7', '192.0.2.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:DB8:0001:2::', '2001:db8:1:2::/64'],
  ['2001:db8::1', '2001:db8:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
  ['64:ff9b::192.0.2.7', '64:ff9b:0:0::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ['unknown', 'unknown'],
  ['', 'unknown'],
])('the address %j counts as %j', (address, group) => expect(addressGroup(address)).toBe(group));

test.each([
  ['0', null],
  ['2', { hops: 2 }],
  ['10.0.0.1', { addresses: ['10.0.0.1'] }],
  ['10.0.0.0/8, ::1,fd00::/8', { addresses: ['10.0.0.0/8', '::1', 'fd00::/8'] }],
  ...['true', '10.0.0.0/33', '10.0.0.1,', '-1', '::/129', 'proxy.example'].map((text) => [text, undefined] as const),
])('TRUST_PROXY=%s trusts %j', (text, proxies) => expect(parseTrustedProxies(text)).toEqual(proxies));

test.each([
  ['application/json', 'json'],
  ['Application/JSON ; Charset="UTF-8"', 'json'],
  ['application/json; boundary=x', 'json'],
  ['application/x-www-form-urlencoded;charset=utf8', 'form'],
  ...['application/json; charset=utf-16', 'application/jsonp', 'text/json', ';', '', undefined].map(
    (text) => [text, null] as const,
  ),
])('the media type %j has the encoding %j', (header, encoding) => expect(bodyEncoding(header)).toBe(encoding));

describe('the rate limit settings', () => {
  test('have the documented defaults (docs/configuration.md)', () => {
    expect(loadConfig({})).toMatchObject({
      authFailureLimit: { count: 20, seconds: 60 },
      tokenRateLimit: { count: 600, seconds: 60 },
      trustProxy: null,
    });
  });

  test('are rejected if they are invalid, and every error is reported', () => {
    const settings = { AUTH_FAILURE_LIMIT: 'off', TOKEN_RATE_LIMIT: '1/y', TRUST_PROXY: 'all' };
    for (const name of Object.keys(settings)) expect(() => loadConfig(settings)).toThrow(name);
    expect(loadConfig({ TOKEN_RATE_LIMIT: 'off' }).tokenRateLimit).toBeNull();
  });
});
