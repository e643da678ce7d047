import { expect, test } from '@jest/globals';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { parseUrl } from '../../../src/values/urls/notify-url.js';

const MANY_CALLS = `
  import { parseUrl } from '${import.meta.resolve('../../../src/values/urls/notify-url.js')}';
  const hosts = new Set();
  for (let calls = 0; calls < 100_000; calls++) hosts.add(parseUrl('https://bücher.example/päth')?.host);
  console.log([...hosts].join());`;

test('a text that is no absolute URL gives null', () => {
  expect(['', 'example.com', '/notify', 'https://', 'https://a b/'].map(parseUrl)).toEqual(Array(5).fill(null));
});

test('a URL with letters such as ü is still parsed once V8 has optimised the code', async () => {
  // A process of its own: what runs tests changes globals, and V8 then optimises less.
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', MANY_CALLS]);
  expect(stdout).toBe('xn--bcher-kva.example\n');
});
