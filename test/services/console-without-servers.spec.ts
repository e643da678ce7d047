import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { BACKEND, type Backend, createBackend } from '../support/backend.js';
import { eventually } from '../support/eventually.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { TestUsher } from '../support/usher.js';
import { ConsolePages } from '../server/console/console-pages.js';

let backend: Backend;
let database: TcpProxy;
let queue: TcpProxy;
let usher: TestUsher;
const pages = new ConsolePages(() => usher);

beforeAll(async () => {
  backend = await createBackend();
  const { DATABASE_URL = '', QUEUE_URL = DATABASE_URL } = backend.settings;
  [database, queue] = await Promise.all([TcpProxy.to(DATABASE_URL), TcpProxy.to(QUEUE_URL)]);
  const through = { DATABASE_URL: database.through(DATABASE_URL), QUEUE_URL: queue.through(QUEUE_URL) };
  usher = await TestUsher.start({ ...backend.settings, ...through, USHER_ROLE: 'api' });
});
afterAll(async () => {
  for (const proxy of [database, queue]) proxy.restore();
  await usher.stop();
  for (const proxy of [database, queue]) proxy.close();
  await backend.drop();
});

const pageWith = (path: string, what: RegExp, status = 200): Promise<string> =>
  eventually(`${path} shows ${what}`, async () => {
    const text = await pages.get(path, status);
    return what.test(text) ? text : null;
  });

test('without a queue the overview and the page on health say so, and what to do', async () => {
  queue.cut();
  expect(await pageWith('/ops', /The queue accepts no jobs/)).toMatch(
    /Check\s+that\s+the\s+server\s+of\s+the\s+queue\s+runs/,
  );
  const health = await pageWith('/ops/health', /The queue accepts no jobs/);
  expect(health).toMatch(/<dt>State<\/dt>\s*<dd><span class="badge bad">down<\/span>/);
  expect(health).toMatch(BACKEND === 'mariadb' ? /MariaDB/ : /PostgreSQL/);
  queue.restore();
  await eventually('it is back', async () => !(await pages.get('/ops')).includes('accepts no jobs'));
});

test('without a database they answer in time, with the reason, and recover by themselves', async () => {
  database.cut();
  const text = await pageWith('/ops', /The database does not answer/);
  expect(text.indexOf('The database does not answer')).toBeLessThan(text.indexOf('class="tiles"'));
  const health = await pageWith(
    '/ops/health',
    /The database does not answer[^]*<span class="badge bad">down<\/span>\s*\S+/,
  );
  expect(health).toContain('USHER_ROLE');
  expect(await pageWith('/ops/receivers', /The database does not answer/, 503)).toContain('role="alert"');
  database.restore();
  await eventually('it is back', async () => !(await pages.get('/ops')).includes('does not answer'));
});
