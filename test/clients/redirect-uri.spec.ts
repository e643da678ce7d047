import { expect, test } from '@jest/globals';
import { redirectUriFault } from '../../src/clients/redirect-uri.js';

test.each([
  ['https://partner.example/callback', true, true],
  ['https://partner.example/callback?from=usher', true, true],
  ['https://partner.example:8443/', true, true],
  ['http://127.0.0.1:4000/callback', true, false],
  ['http://localhost:4000/callback', true, false],
  ['http://[::1]:4000/callback', true, false],
  ['http://partner.example/callback', false, false],
  ['http://127.0.0.1.evil.example/', false, false],
  ['https://partner.example/callback#top', false, false],
  ['https://partner.example/callback#', false, false],
  ['https://user:password@partner.example/', false, false],
  ['https://PARTNER.example/', false, false],
  ['https://partner.example', false, false],
  ['https://partner.example/a/../b', false, false],
  ['https://partner.example/a b', false, false],
  ['https://partner.example/\n', false, false],
  ['partner.example/callback', false, false],
  ['javascript:alert(1)', false, false],
  ['com.example.app:/callback', false, false],
  ['', false, false],
  [`https://partner.example/${'x'.repeat(2_048)}`, false, false],
])('a redirect URI %s is registered in the sandbox: %s, in production: %s', (uri, inSandbox, inProduction) => {
  expect([redirectUriFault(uri, true) === null, redirectUriFault(uri, false) === null]).toEqual([
    inSandbox,
    inProduction,
  ]);
});

test('the advice on an address that is not in its normal form is never refused for its scheme', () => {
  expect(redirectUriFault('ftp://a', true)).toBe('must begin with https://, or with http:// for 127.0.0.1');
  expect(redirectUriFault('http://localhost', false)).toBe('must begin with https://');
  expect(redirectUriFault('https://A', false)).toBe('is not in its normal form; use https://a/');
});
