import { describe, expect, test } from '@jest/globals';
import { addressKind, isAllowedAddress, type AddressKind } from '../../src/values/urls/notify-url.js';

const KINDS: Record<AddressKind, string[]> = {
  public: [
    '1.1.1.1',
    '93.184.216.34',
    '9.255.255.255',
    '11.0.0.0',
    '100.63.255.255',
    '100.128.0.0',
    '126.255.255.255',
    '128.0.0.0',
    '169.253.255.255',
    '172.15.255.255',
    '172.32.0.0',
    '192.167.255.255',
    '192.169.0.0',
    '198.17.255.255',
    '198.20.0.0',
    '223.255.255.255',
    '2606:2800:220:1:248:1893:25c8:1946',
    '2001:200::1',
    '2003::1',
    '3ffe::1',
    '::ffff:1.1.1.1',
    '::FFFF:101:101',
    '64:ff9b::1.1.1.1',
    '64:ff9b::101:101',
    '0:0:0:0:0:ffff:1.1.1.1',
  ],
  private: [
    '10.0.0.0',
    '10.255.255.255',
    '172.16.0.0',
    '172.31.255.255',
    '192.168.0.0',
    '192.168.255.255',
    'fc00::',
    'fdff:ffff::1',
    'fec0::1',
    'feff::1',
    '::ffff:10.0.0.1',
    '::ffff:a00:1',
    '64:ff9b::c0a8:1',
    '::ffff:10.0.0.1%1',
  ],
  shared: ['100.64.0.0', '100.127.255.255', '::ffff:100.64.0.1'],
  loopback: [
    '127.0.0.0',
    '127.0.0.1',
    '127.255.255.255',
    '::1',
    '0:0:0:0:0:0:0:1',
    '::ffff:127.0.0.1',
    '64:ff9b::7f00:1',
  ],
  benchmarking: ['198.18.0.0', '198.19.255.255', '2001:2::1'],
  'link-local': ['169.254.0.0', '169.254.255.255', 'fe80::1', 'febf::1', 'fe80::1%eth0', '::ffff:169.254.1.1'],
  metadata: [
    '169.254.169.254',
    '100.100.100.200',
    '192.0.0.192',
    '168.63.129.16',
    'fd00:ec2::254',
    'fd20:ce::254',
    'fd00:42::42',
    'fd00:c1::a9fe:a9fe',
    '::ffff:169.254.169.254',
    '::ffff:a9fe:a9fe',
    '64:ff9b::a9fe:a9fe',
    '64:ff9b::6464:64c8',
  ],
  unspecified: ['0.0.0.0', '0.255.255.255', '::', '::ffff:0.0.0.0', '::ffff:0:0', '64:ff9b::'],
  multicast: ['224.0.0.0', '239.255.255.255', 'ff02::1', 'ffff::1'],
  documentation: ['192.0.2.1', '198.51.100.1', '203.0.113.1', '2001:db8::1', '3fff:fff::1'],
  reserved: [
    '192.0.0.0',
    '192.0.0.255',
    '240.0.0.0',
    '255.255.255.255',
    '2001:10::1',
    '2001:1ff::1',
    '100::1',
    '5f00::1',
    '::7f00:1',
    '::169.254.169.254',
    '::ffff:0:127.0.0.1',
    '64:ff9a::1',
    '64:ff9b:0:0:0:1::',
    '4000::1',
    '1fff::1',
  ],
  tunnel: [
    '2002::1',
    '2002:a9fe:a9fe::1',
    '2001::1',
    '2001:0:a9fe::1',
    '64:ff9b:1::a00:1',
    '64:ff9b:1:ffff::1',
    '192.88.99.1',
  ],
  invalid: ['', 'localhost', '256.1.1.1', '1.2.3', '0x7f.0.0.1', '[::1]', ':::1', '1.1.1.1 ', 'fe80::1::2'],
};

describe('the kind of an address', () => {
  const rows = Object.entries(KINDS).flatMap(([kind, addresses]) =>
    addresses.map((address) => [address, kind] as const),
  );

  test.each(rows)('%s is %s', (address, kind) => {
    expect(addressKind(address)).toBe(kind);
    expect(isAllowedAddress(address, false)).toBe(kind === 'public');
  });

  test('the setting for private hosts does not allow link-local, metadata or tunnel addresses', () => {
    const opened = Object.entries(KINDS).filter(([, addresses]) => addresses.every((ip) => isAllowedAddress(ip, true)));
    expect(opened.map(([kind]) => kind)).toEqual(['public', 'private', 'shared', 'loopback', 'benchmarking']);
    const shut = Object.entries(KINDS).filter(([, addresses]) => !addresses.some((ip) => isAllowedAddress(ip, true)));
    expect(opened.length + shut.length).toBe(Object.keys(KINDS).length);
  });
});
