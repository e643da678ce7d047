import { expect, test } from '@jest/globals';
import { newId } from '../../src/values/identifier.js';

test('ids sort by creation time, both by bytes and in a linguistic collation', () => {
  const start = Date.UTC(2026, 0, 1);
  const ids = Array.from({ length: 2_000 }, (_, n) => newId('sandbox', start + n * 977));
  expect([...ids].sort()).toEqual(ids);
  expect([...ids].sort(new Intl.Collator('en').compare)).toEqual(ids);
});
