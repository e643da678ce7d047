import { syncBuiltinESMExports } from 'node:module';
import os from 'node:os';
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import { ProcessList } from '../../../../src/clients/keys/processes.js';
import { ServiceProcess } from '../../../../src/database/service-process.entity.js';
import { VERSION } from '../../../../src/values/version.js';
import { BACKEND } from '../../../support/backend.js';
import { eventually } from '../../../support/eventually.js';
import { TestUsher } from '../../../support/usher.js';
import { ConsolePages, HOSTILE } from '../console-pages.js';

let usher: TestUsher;
const pages = new ConsolePages(() => usher);

beforeAll(async () => {
  // As where /proc shows processes only (ProcSubset=pid of systemd).
  jest.spyOn(os, 'cpus').mockReturnValue([]);
  syncBuiltinESMExports();
  usher = await TestUsher.start();
});
afterAll(() => usher.stop());

/** The value behind a name in a list of facts, as text. */
const fact = (text: string, name: string): string =>
  new RegExp(`<dt>${name}</dt>\\s*<dd>([^]*?)</dd>`)
    .exec(text)?.[1]
    ?.replace(/<[^>]*>/g, '')
    .trim() ?? `no ${name}`;

test('shows versions, migrations, queues, this process and its settings, without a secret', async () => {
  const text = await eventually('a worker is known', async () => {
    const page = await pages.get('/ops/health');
    return page.includes('No fault is known.') ? page : null;
  });
  expect(fact(text, 'Usher')).toBe(VERSION);
  expect(fact(text, 'Node.js')).toBe(process.version);
  expect(fact(text, 'Database')).toMatch(BACKEND === 'mariadb' ? /MariaDB/ : /^PostgreSQL \d/);
  expect(fact(text, 'Redis')).toMatch(BACKEND === 'mariadb' ? /^\d+\.\d+/ : /^no Redis$/);
  expect(fact(text, 'Migrations')).toMatch(/^(\d+) of \1 done$/);
  expect(fact(text, 'Load')).toMatch(/ on [1-9]\d* processor/);
  expect(fact(text, 'Clock')).toMatch(/the database’s$/);
  expect(fact(text, 'WEBHOOK_RETRY_EVERY')).toBe('1s');
  if (BACKEND === 'mariadb') expect(Number(fact(text, 'Workers connected'))).toBeGreaterThan(0);
  for (const queue of ['usher-webhook', 'usher-retry-run', 'usher-purge'])
    expect(text).toContain(`/ops/queues/queue/${queue}"`);
  const rows = await usher.dataSource.manager.find(ServiceProcess);
  expect(rows).toMatchObject([{ role: 'all', version: VERSION }]);
  expect(text).toContain(`${rows[0]!.name} <span class="dim">(this one)</span>`);
  const { USHER_MASTER_KEYS = 'only beside a server' } = usher.settings;
  expect(text).not.toContain(USHER_MASTER_KEYS);
});

test('other processes are listed with their clocks and versions, and each fault says what to do', async () => {
  const { manager } = usher.dataSource;
  const now = Date.now();
  const other = { role: 'worker', version: VERSION, startedAt: now, seenAt: now, clockAheadMs: 0 };
  await manager.insert(ServiceProcess, [
    { ...other, id: 'ahead', name: 'web-1:10', clockAheadMs: 61_000 },
    { ...other, id: 'older', name: 'web-2:11', version: '0.1.9' },
    { ...other, id: 'lacking', name: 'web-4:13', keyIds: ['earlier'] },
    { ...other, id: 'silent', name: HOSTILE, seenAt: now - 600_000 },
    { ...other, id: 'forgotten', name: 'web-3:12', seenAt: now - 7_200_000 },
  ]);
  const text = await eventually('the page shows them', async () => {
    const page = await pages.get('/ops/health');
    return page.includes('web-1:10') ? page : null;
  });
  expect(text).toMatch(/The clock of web-1:10 is 61\.0 s ahead of the database’s\.<\/strong>[^]*NTP/);
  expect(text).toMatch(new RegExp(`different versions run: 0\\.1\\.9, ${VERSION}\\.</strong>\\s+Finish the upgrade`));
  expect(text).toMatch(/Without master key \S+: web-4:13\.<\/strong>\s+They cannot open[^]*Add the key/);
  expect(text).toMatch(/1 process\(es\) fell silent within the last hour:\s+&lt;script&gt;/);
  expect(text).not.toContain('web-3:12');
});

test('a process that stops takes its row with it', async () => {
  const list = usher.running.app.get(ProcessList, { strict: false });
  expect(await usher.dataSource.manager.existsBy(ServiceProcess, { id: list.id })).toBe(true);
  await list.beforeApplicationShutdown();
  expect(await usher.dataSource.manager.existsBy(ServiceProcess, { id: list.id })).toBe(false);
});
