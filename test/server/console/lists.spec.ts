import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { AuditLog } from '../../../src/audit/audit.module.js';
import { AuditEvent } from '../../../src/audit/audit-event.entity.js';
import { basic, TestUsher } from '../../support/usher.js';
import { ConsolePages } from './console-pages.js';

let usher: TestUsher;
const pages = new ConsolePages(() => usher);
beforeAll(async () => {
  usher = await TestUsher.start();
  for (let n = 1; n <= 120; n += 1)
    await usher.clients.create(`House ${n}`, n % 2 ? `https://h${n}.example/notify` : null);
  await usher.clients.create('=HYPERLINK("https://evil.example")', null);
});
afterAll(() => usher.stop());

const names = (text: string) => [...text.matchAll(/>(House \d+)<\/a>/g)].map(([, name]) => name);
const link = (text: string, rel: string) =>
  new RegExp(`rel="${rel}"\\s+href="([^"]+)"`).exec(text)?.[1]?.replaceAll('&amp;', '&') ?? '';
const house = (n: number) => `House ${n}`;
const file = async (path: string) => {
  const { status, body } = await usher.request('GET', path, { authorization: basic('ops', 'ops') });
  return { status, lines: String(body.text).trim().split('\r\n') };
};

test('a list says how many rows match, and links the next and the previous pages', async () => {
  const first = await pages.get('/ops/clients?q=house');
  expect(first).toContain('120 clients');
  const second = await pages.get(link(first, 'next'));
  const third = await pages.get(link(second, 'next'));
  expect(third).toContain('120 clients');
  expect(link(third, 'next')).toBe('');
  expect(new Set([first, second, third].flatMap(names)).size).toBe(120);
  const back = await pages.get(link(third, 'prev'));
  expect(names(back)).toEqual(names(second));
  expect(names(await pages.get(link(back, 'prev')))).toEqual(names(first));
  expect(await pages.get('/ops/clients?q=house+77')).toContain('1 client<');
});

test('a click on the name of a column sorts by it, a second one the other way, also on further pages', async () => {
  const sorted = await pages.get('/ops/clients?q=house&sort=Client');
  expect(names(sorted)).toEqual(Array.from({ length: 50 }, (_, n) => house(n + 1)));
  expect(sorted).toMatch(/aria-sort="ascending">\s*<a href="\/ops\/clients\?q=house&amp;sort=-Client"/);
  const reversed = await pages.get('/ops/clients?q=house&sort=-Client');
  expect(names(reversed)).toEqual(Array.from({ length: 50 }, (_, n) => house(120 - n)));
  expect(names(await pages.get(link(reversed, 'next')))).toEqual(Array.from({ length: 50 }, (_, n) => house(70 - n)));
  const byReceiver = await pages.get('/ops/clients?q=house&sort=Receiver');
  expect(names(byReceiver).slice(0, 3)).toEqual(['House 1', 'House 3', 'House 5']);
  expect(names(await pages.get('/ops/clients?q=house&sort=constructor'))).toHaveLength(50);
});

test('a saved file has exactly the rows that match the filter, no cell that a spreadsheet would run, and is in the audit', async () => {
  const { lines } = await file('/ops/clients.csv?q=house');
  expect(lines[0]).toBe('"Client","Id","State","Receiver","Last notification","Created"');
  expect(lines).toHaveLength(121);
  const [one] = (await usher.clients.list()).filter(({ name }) => name === 'House 7');
  expect(lines).toContain(
    `"House 7","${one?.id}","active","h7.example","","${new Date(one?.createdAt ?? 0).toISOString()}"`,
  );
  expect((await file('/ops/clients.csv?q=hyperlink')).lines[1]).toMatch(/^"'=HYPERLINK\(""https/);
  const [event] = await usher.running.app.get(AuditLog, { strict: false }).list({ action: 'list.exported', limit: 1 });
  expect(event).toMatchObject({ actor: 'operator:ops', detail: { list: 'clients', q: 'hyperlink' } });
  await file('/ops/clients.csv?q=house&list=audit&event=client.disabled&context=http');
  const [forged] = await usher.running.app.get(AuditLog, { strict: false }).list({ action: 'list.exported', limit: 1 });
  expect(forged?.detail).toEqual({ list: 'clients', q: 'house' });
  expect((await file('/ops/audit.csv?since=never')).status).toBe(400);
});

test('a list of more than 10,000 rows says so, and is not sorted by a column without an index', async () => {
  const events = Array.from({ length: 10_001 }, (_, n) => ({
    id: `s${String(n).padStart(21, '0')}`,
    createdAt: 1_000 + n,
    actor: `operator:${n % 7}`,
    address: null,
    action: 'queue.changed' as const,
    subject: null,
    detail: {},
  }));
  for (let at = 0; at < events.length; at += 1_000)
    await usher.dataSource.manager.insert(AuditEvent, events.slice(at, at + 1_000));
  const page = await pages.counted('/ops/audit?sort=Who', 'More than 10,000 events');
  expect(page).toContain('Only a list of at most 10,000 rows is sorted by this column.');
  expect(page).not.toContain('aria-sort');
  // A search that looked at 10,000 rows has not seen all.
  await pages.counted('/ops/audit?actor=operator:3', /At least [\d,]+ events/);
  expect((await file('/ops/audit.csv')).lines.length).toBeGreaterThan(10_001);
});
