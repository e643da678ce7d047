import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { VERSION } from '../../src/values/version.js';

test('the version is that of package.json', () => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
  expect(VERSION).toBe(version);
});
