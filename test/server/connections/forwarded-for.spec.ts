import { describe, expect, test } from '@jest/globals';
import { addressGroup } from '../../../src/http/exchange.js';
import { trustOf } from '../../../src/server/connections.js';
import { parseTrustedProxies } from '../../../src/options/option-kinds.js';
import { captureLog } from '../../auth/tokens/support.js';
import { type Answer, basic, TestUsher } from '../../support/usher.js';

const trusts = (setting: string, address: string, hop = 0): boolean =>
  trustOf(parseTrustedProxies(setting) ?? null)(address, hop);

describe('TRUST_PROXY', () => {
  test.each([
    ['0', '10.0.0.1', false],
    ['1', '192.0.2.1', true],
    ['10.0.0.1', '10.0.0.1', true],
    ['10.0.0.1', '10.0.0.2', false],
    ['10.0.0.0/8', '10.9.8.7', true],
    ['10.0.0.0/8', '::ffff:10.9.8.7', true],
    ['10.0.0.0/8', '::ffff:a09:807', true],
    ['10.0.0.0/8', '10.9.8.7:4711', true],
    ['fd00::/8', 'fd12::1', true],
    ['fd00::/8', '[fd12::1]:4711', true],
    ['fd00::/8,::1', 'fe80::1', false],
    ['10.0.0.0/8', 'unknown', false],
  ])('%s trusts %s: %s', (setting, address, expected) => expect(trusts(setting, address)).toBe(expected));

  test('as a number trusts this many hops', () => {
    expect([0, 1, 2].map((hop) => trusts('2', '192.0.2.1', hop))).toEqual([true, true, false]);
  });
});

test.each([
  ['192.0.2.7:54321', '192.0.2.7'],
  ['[2001:db8:1:2::7]:54321', '2001:db8:1:2::/64'],
  ['[2001:db8:1:2::7]', '2001:db8:1:2::/64'],
  ['[::ffff:192.0.2.7]:1', '192.0.2.7'],
  ['::ffff:c000:207', '192.0.2.7'],
  ['[::FFFF:C000:0207]:1', '192.0.2.7'],
  ['0:0:0:0:0:ffff:c000:207', '192.0.2.7'],
  ['0000:0000:0000:0000:0000:ffff:192.0.2.7', '192.0.2.7'],
  ['::ffff:0:c000:207', '0:0:0:0::/64'],
  ['192.0.2.7:', 'unknown'],
  [':54321', 'unknown'],
  ['[]:1', 'unknown'],
])('the forwarded address %j counts as %j', (address, group) => expect(addressGroup(address)).toBe(group));

describe('behind a proxy', () => {
  const authenticate = (usher: TestUsher, authorization: string, address: string): Promise<Answer> => {
    const headers = { authorization, 'content-type': 'application/json', 'x-forwarded-for': address };
    return usher.request('POST', '/auth/introspect', headers, '{"token":"x"}');
  };

  test('that writes ports, each client has its own limits, whatever its ports are', async () => {
    const usher = await TestUsher.start({ TRUST_PROXY: '127.0.0.1,10.0.0.0/8', AUTH_FAILURE_LIMIT: '2/h' });
    const client = await usher.client();
    const via = (address: string, authorization = client.basic): Promise<Answer> =>
      authenticate(usher, authorization, `${address}, 10.0.0.9:443`);
    for (const port of [1, 2]) await via(`192.0.2.1:${port}`, basic(client.id, 'wrong'));
    const [sameClient, otherClient, otherFamily] = [
      await via('192.0.2.1:3'),
      await via('192.0.2.2:1'),
      await via('[2001:db8::1]:1'),
    ];
    await usher.stop();
    expect([sameClient, otherClient, otherFamily].map(({ status }) => status)).toEqual([429, 200, 200]);
  });

  test('that is not trusted, the log warns of the first X-Forwarded-For, and of no other', async () => {
    const usher = await TestUsher.start({ TRUST_PROXY: '10.0.0.1' });
    const client = await usher.client();
    const log = captureLog(usher);
    for (let n = 0; n < 3; n += 1) await authenticate(usher, client.basic, '192.0.2.1');
    await usher.stop();
    const warnings = log.map((line) => String(line[0])).filter((line) => line.includes('X-Forwarded-For'));
    expect(warnings).toEqual([expect.stringMatching(/from (::ffff:)?127\.0\.0\.1 is ignored.*TRUST_PROXY/)]);
  });

  test('that is trusted, no warning is logged', async () => {
    const usher = await TestUsher.start({ TRUST_PROXY: '1' });
    const client = await usher.client();
    const log = captureLog(usher);
    await authenticate(usher, client.basic, '192.0.2.1');
    await usher.stop();
    expect(JSON.stringify(log)).not.toContain('is ignored');
  });
});
