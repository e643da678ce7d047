import { expect, test } from '@jest/globals';
import { listPage } from '../../../src/http/pages/list.js';
import type { Visit } from '../../../src/http/pages/site.js';
import { newId } from '../../../src/values/identifier.js';

const last = newId('sandbox', Date.UTC(2026, 10, 20));
const page = listPage({
  path: '/rows',
  title: 'Rows',
  noun: 'row',
  fields: {},
  columns: { Name: 'name', Ended: { time: 'endedAt' } },
  orders: ['Ended'],
  read: () => Promise.resolve({ rows: [{ name: 'one', endedAt: 1 }], next: last, isCut: true }),
  count: null,
  nothing: ['nothing', 'nothing fits'],
});
const shown = async (sort: string): Promise<string> => {
  const visit = { query: { sort }, refusal: null, clientId: null } as unknown as Visit;
  return JSON.stringify(await page.show(visit, undefined))
    .replace(/<[^>]*>|\\n/g, ' ')
    .replace(/\s+/g, ' ');
};

test('a search that ended early names the time that it reached only in the order of that time', async () => {
  expect(await shown('')).toMatch(/The search stopped at 20 Nov 2026, 00:00:00 UTC [^.]*\. Older rows may match;/);
  for (const sort of ['Ended', '-Ended'])
    expect(await shown(sort)).toContain('The search stopped after many rows. Further rows may match;');
});
