import { execSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { BACKEND, createBackend, type Backend, POSTGRES_URL, type Settings } from '../support/backend.js';
import { eventually } from '../support/eventually.js';
import { TestReceiver } from '../support/receiver.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { type TestClient, TestUsher } from '../support/usher.js';

const ORDERS = 20;

let backend: Backend;
let proxy: TcpProxy;
let server: TestUsher;
let receiver: TestReceiver;
let client: TestClient;
const log: Record<string, unknown>[] = [];

/** The queue is not behind the proxy. */
function settings(): Settings {
  const { DATABASE_URL = '' } = backend.settings;
  const queue: Settings = BACKEND === 'postgres' ? { QUEUE_URL: DATABASE_URL } : {};
  return { ...backend.settings, ...queue, DATABASE_URL: proxy.through(DATABASE_URL), LOG_LEVEL: 'info' };
}

beforeAll(async () => {
  backend = await createBackend();
  proxy = await TcpProxy.to(backend.settings.DATABASE_URL ?? POSTGRES_URL);
  const output = { write: (line: string) => void log.push(JSON.parse(line) as Record<string, unknown>) };
  // A lease longer than the test, so that no attempt is repeated.
  server = await TestUsher.start({ ...settings(), WEBHOOK_RETRY_MIN_INTERVAL: '5m' }, output);
  receiver = await TestReceiver.start();
  client = await server.client(receiver.url);
});
afterAll(async () => {
  receiver.close();
  proxy.close();
  await server.backend.drop();
  await backend.drop();
});

/** What the first command of the page finds in the log until now. */
function firstSearch(): string {
  const [command = ''] =
    /grep -v .*(?= usher\.log)/.exec(readFileSync('docs/operations/when-things-break.md', 'utf8')) ?? [];
  return execSync(command, { input: log.map((line) => `${JSON.stringify(line)}\n`).join(''), encoding: 'utf8' });
}

const linesOf = (pattern: RegExp): string[] => log.map(({ msg }) => String(msg)).filter((line) => pattern.test(line));

test('attempts that end while the database is away are recorded afterwards, with few log lines meanwhile', async () => {
  const answers: (() => void)[] = [];
  receiver.behaviour = (response) => void answers.push(() => response.writeHead(200).end());
  const keys = await Promise.all(Array.from({ length: ORDERS }, () => client.completedOrder()));
  await eventually('all notifications have arrived', () => answers.length === ORDERS);
  proxy.cut();
  log.splice(0);
  for (const answer of answers) answer();
  const [away] = await eventually('the outage is logged', () => {
    const lines = linesOf(/^the database is away: /);
    return lines.length > 0 && lines;
  });
  const refused = proxy.refused;
  await eventually('the database was tried several times more', () => proxy.refused >= refused + 5);
  expect(linesOf(/^the database is away: /)).toEqual([away]);
  expect(away).toMatch(new RegExp(`; ${ORDERS} attempt\\(s\\) wait to be recorded$`));
  expect(linesOf(/^webhook s/)).toEqual([]);
  for (let n = 0; n < 5; n += 1) expect((await client.token()).status).toBe(503);
  const found = firstSearch();
  expect(found).toContain('the database is away: ');
  expect(found).not.toMatch(/"durationMs":/);
  // None, if another test of this process wrote the line of this minute.
  expect(log.filter(({ context, error }) => context === 'http' && error !== undefined).length).toBeLessThanOrEqual(1);

  const closed = server.running.app.close();
  const [left] = await eventually('the shutdown says what is left', () => {
    const lines = linesOf(/^shutting down with /);
    return lines.length > 0 && lines;
  });
  expect(left).toMatch(new RegExp(`^shutting down with ${ORDERS} attempt\\(s\\) that are not recorded: `));
  expect(left!.match(/s\w{21} \(attempt 1\)/g)).toHaveLength(ORDERS);
  proxy.restore();
  await closed;

  const after = await TestUsher.start({ ...settings(), USHER_ROLE: 'api' });
  for (const key of keys) expect(await after.webhook(key, 'SUCCESS')).toMatchObject({ attemptCount: 1 });
  await after.stop();
  expect(receiver.arrivals).toHaveLength(ORDERS);
});
