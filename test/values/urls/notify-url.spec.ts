import { describe, expect, test } from '@jest/globals';
import { NotifyUrlError, checkNotifyUrl, type NotifyUrlPolicy } from '../../../src/values/urls/notify-url.js';

const STRICT: NotifyUrlPolicy = { allowPrivateHosts: false, httpsOnly: true };
const PLAIN: NotifyUrlPolicy = { allowPrivateHosts: false, httpsOnly: false };
const SANDBOX: NotifyUrlPolicy = { allowPrivateHosts: true, httpsOnly: false };

function refusal(url: string, policy: NotifyUrlPolicy): string {
  try {
    checkNotifyUrl(url, policy);
    return 'accepted';
  } catch (error) {
    expect(error).toBeInstanceOf(NotifyUrlError);
    return (error as NotifyUrlError).message;
  }
}

describe('a Notify URL', () => {
  test.each([
    'https://example.com',
    'https://example.com/notify?token=a%20b&x=[]',
    'HTTPS://Example.COM:443/',
    'https://example.com:80/',
    'https://example.com:1024/',
    'https://example.com:65535/',
    'https://1.1.1.1/',
    'https://[2606:4700::1111]:8443/',
    'https://bücher.example/päth',
    'https://localhost.example.com/',
    'https://mylocalhost/',
    `https://${'a.'.repeat(123)}example/`,
    `https://example.com/${'a'.repeat(2028)}`,
  ])('%s is accepted', (url) => {
    expect(checkNotifyUrl(url, STRICT).href).toBe(new URL(url).href);
  });

  test.each([
    '',
    'example.com',
    '//example.com/',
    '/notify',
    'https:example.com',
    'https:/example.com',
    'https:///example.com',
    'https:\\\\example.com',
    'https://',
    'https://\\example.com',
    'ftp://example.com/',
    'file:///etc/passwd',
    'javascript:alert(1)',
    'https://exa\tmple.com/',
    'https://example.com/a b',
    'https://example.com/\u0000',
    'https://example.com/\ud800',
    'https://\udfff/',
    'https://example.com\\@10.0.0.1/',
    'https://a b.com/',
    'https://256.256.256.256/',
    'https://[::1/',
    'https://example.com:65536/',
  ])('%j is not an absolute http or https URL', (url) => {
    expect(refusal(url, SANDBOX)).toContain('must be an absolute http or https URL');
  });

  test.each([
    [`https://example.com/${'a'.repeat(2029)}`, 'at most 2048 characters; this one has 2049'],
    [`https://example.com/${'é'.repeat(1000)}`, 'at most 2048 characters once percent-encoded'],
    [`https://${'a.'.repeat(124)}example/`, 'The host of the Notify URL may have at most 253 characters'],
    [' https://example.com/', 'Remove the space at the beginning or the end'],
    ['https://example.com/\n', 'Remove the space at the beginning or the end'],
    ['https://user:pass@example.com/', 'Remove the user name and password'],
    ['https://user@example.com/', 'Remove the user name and password'],
    ['https://:pass@example.com/', 'Remove the user name and password'],
    ['https://example.com/#part', 'Remove the fragment'],
    ['https://example.com/#', 'Remove the fragment'],
    ['https://example.com:0/', 'Port 0 is not allowed'],
    ['https://example.com:22/', 'Port 22 is not allowed'],
    ['https://example.com:025/', 'Port 25 is not allowed'],
    ['https://example.com:1023/', 'use 80, 443 or a port from 1024 to 65535'],
    ['http://example.com/', 'must start with https://'],
  ])('%s is refused with a message that says what to change', (url, message) => {
    expect(refusal(url, STRICT)).toContain(message);
  });

  test('may be http if https is not required', () => {
    expect(refusal('http://example.com/', PLAIN)).toBe('accepted');
  });

  test.each([
    '127.0.0.1',
    '127.1',
    '127.0.1',
    '2130706433',
    '0x7f000001',
    '0x7F.1',
    '0177.0.0.1',
    '017700000001',
    '127.0.0.1.',
    '%31%32%37.0.0.1',
    '１２７.0.0.1',
    '127。0。0。1',
    '[::1]',
    '[0:0:0:0:0:0:0:1]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '10.0.0.1',
    '012.0.0.1',
    '192.168.1',
    '3232235777',
    '100.64.0.1',
    '[fd00::1]',
    '[64:ff9b::10.0.0.1]',
    '198.18.0.1',
  ])('at the private address %s is refused unless private hosts are allowed', (host) => {
    expect(refusal(`http://${host}:8080/`, PLAIN)).toContain('which is not allowed; use a public host');
    expect(refusal(`http://${host}:8080/`, SANDBOX)).toBe('accepted');
  });

  test.each([
    '169.254.169.254',
    '2852039166',
    '0xa9fea9fe',
    '0251.0376.0251.0376',
    '169.254.43518',
    '169.254.169.254.',
    '169.254.169.254..',
    '[::ffff:169.254.169.254]',
    '[::ffff:a9fe:a9fe]',
    '[64:ff9b::a9fe:a9fe]',
    '[64:ff9b:1::a9fe:a9fe]',
    '[2002:a9fe:a9fe::]',
    '[fe80::1]',
    '[fd00:ec2::254]',
    '100.100.100.200',
    '192.0.0.192',
    '0.0.0.0',
    '0',
    '[::]',
    '224.0.0.1',
    '255.255.255.255',
  ])('at %s is always refused', (host) => {
    for (const policy of [PLAIN, SANDBOX])
      expect(refusal(`http://${host}:8080/`, policy)).toContain('which is not allowed');
  });

  test.each([
    'localhost',
    'LOCALHOST',
    'localhost.',
    'api.localhost',
    'localhost.localdomain',
    'ip6-localhost',
    'ip6-loopback',
  ])('at the name %s is refused unless private hosts are allowed', (host) => {
    expect(refusal(`http://${host}:8080/`, PLAIN)).toContain('points to this machine');
    expect(refusal(`http://${host}:8080/`, SANDBOX)).toBe('accepted');
  });
});
