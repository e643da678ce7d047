import { describe, expect, test } from '@jest/globals';
import { resolveOptions } from '../../src/resolve-options.js';
import type { UsherOptions } from '../../src/usher.options.js';
import { optionFaults, options, variableFaults } from './given.js';

const WANTED = ' is invalid; use an http:// or https:// URL without credentials, query or fragment';

describe.each(['publicUrl', 'guidesUrl'])('%s', (name) => {
  test.each([
    'https:/a.example',
    'https:a.example',
    'https:\\\\a.example',
    'https://\\a.example',
    'https:///a.example',
    'https://a.example\\v1',
    'https://a.example/v1/../x',
    'https://a.example/v1/./x',
    'https://a.example/%2e%2e/x',
    'https://a.example/é/../x',
    'https://a.example/v\t1',
    'https://a.example/<v1>',
    'http://0x7f.1',
    'https://a.example:0443',
  ])('is not %j, which a parser changes', (value) => {
    expect(optionFaults({ ...options(), [name]: value })).toEqual([name + WANTED]);
    expect(variableFaults({ USHER_AUTH_URL: value })).toEqual([`USHER_AUTH_URL${WANTED}`]);
  });

  test.each([
    ['https://a.example', 'https://a.example'],
    ['https://a.example/', 'https://a.example'],
    ['https://a.example/v1/', 'https://a.example/v1'],
    ['HTTPS://A.example:443/V1', 'HTTPS://A.example:443/V1'],
    ['http://[::1]:3000/a%20b', 'http://[::1]:3000/a%20b'],
    ['https://kino-münchen.example/größe', 'https://xn--kino-mnchen-yhb.example/gr%C3%B6%C3%9Fe'],
  ])('can be %s', (given, value) => {
    const resolved = resolveOptions({ ...options(), [name]: given } as unknown as UsherOptions);
    expect((resolved as unknown as Record<string, unknown>)[name]).toBe(value);
  });
});
