import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { AuditLog } from '../../../../src/audit/audit.module.js';
import { addOutcomes } from '../../../../src/webhooks/figures/add-outcomes.js';
import { eventually } from '../../../support/eventually.js';
import { answer, TestReceiver } from '../../../support/receiver.js';
import { OperatorBrowser } from '../../../support/operator-browser.js';
import { type TestClient, TestUsher } from '../../../support/usher.js';
import { ConsolePages, HOSTILE } from '../console-pages.js';

let usher: TestUsher;
let receiver: TestReceiver;
let client: TestClient;
let host: string;
const pages = new ConsolePages(() => usher);

beforeAll(async () => {
  usher = await TestUsher.start({ WEBHOOK_MAX_ATTEMPTS: '2' });
  receiver = await TestReceiver.start();
  host = new URL(receiver.url).host;
  client = await usher.client(receiver.url);
  receiver.behaviour = (response) => void response.writeHead(404).end(HOSTILE);
  await usher.webhook(await client.completedOrder(), 'FAILED');
  receiver.behaviour = answer(200);
  await usher.webhook(await client.completedOrder(), 'SUCCESS');
});
afterAll(async () => {
  await usher.stop();
  receiver.close();
});

const path = (): string => `/ops/receivers/${encodeURIComponent(host)}`;

/** The cells of the row that contains a text. */
const cellsOf = (text: string, part: string): string[] =>
  [...text.matchAll(/<tr role="row">([^]*?)<\/tr>/g)]
    .filter(([row]) => row.includes(part) && row.includes('role="cell"'))
    .map(([row]) =>
      [...row.matchAll(/<div>([^]*?)<\/div>/g)].map(([, cell = '']) => cell.replace(/<[^>]*>/g, '').trim()),
    )[0] ?? [];

test('the list shows each host with attempts, failures and rate, for a day and for a week', async () => {
  for (const range of ['', '?range=1h', '?range=24h', '?range=7d', '?range=30d']) {
    const text = await pages.get(`/ops/receivers${range}`);
    expect(cellsOf(text, host).slice(0, 5)).toEqual([host, '1', '3', '2', '33.3 %']);
    expect(text).toContain(`href="${path()}"`);
  }
  expect(await pages.get('/ops/receivers?range=%00')).toContain('Last 24 hours</strong>');
});

test('the list is found by host, sorted by each column of figures, and saved as a file', async () => {
  expect(await pages.get('/ops/receivers?q=127.0&range=7d')).toMatch(
    /1 receiver<[^]*receivers\.csv\?q=127\.0&amp;range=7d/,
  );
  expect(await pages.get('/ops/receivers?q=nobody')).toContain('No such attempts in this range.');
  for (const column of ['Receiver', 'Succeeded', 'p95', 'Failing since', 'Why'])
    expect(await pages.get(`/ops/receivers?sort=-${encodeURIComponent(column)}`)).toContain('aria-sort="descending"');
  const { body } = await usher.request('GET', '/ops/receivers.csv', pages.headers);
  expect(String(body.text)).toMatch(new RegExp(`"Failing since","Why"\\s+"${host}","1","3","2","0\\.333`));
});

test('a receiver has its charts, its clients with their Notify URLs, and the last answers with what they mean', async () => {
  const text = await pages.get(path());
  expect(text).toContain('aria-label="Attempts. 3 attempts, 2 failed (66.7 %)');
  expect(text).toContain('aria-label="Time of an attempt. Between');
  expect(cellsOf(text, receiver.url).slice(0, 5)).toEqual(['A test client', receiver.url, '3', '2', '33.3 %']);
  expect(text.match(/The receiver has nothing at this path \(404\)\./g)).toHaveLength(2);
  expect(text).toContain('Delivered.');
  expect(text).toContain('>404</span>');
});

test('the page of a receiver shows attempts, failures and the last answer of each Notify URL', async () => {
  receiver.behaviour = answer(410);
  await usher.webhook(await client.completedOrder({ notifyUrl: `${receiver.url}/own` }), 'FAILED');
  receiver.behaviour = answer(200);
  const urls = (await pages.get(path())).split('<h2>Notify URLs</h2>')[1] ?? '';
  const rowOf = (url: string) => cellsOf(urls, `>${url}<`).filter((_, column) => column !== 3 && column < 5);
  expect(rowOf(`${receiver.url}/own`)).toEqual([`${receiver.url}/own`, '2', '2', '410']);
  expect(rowOf(receiver.url)).toEqual([receiver.url, '3', '2', '200']);
});

test('the page of a failing receiver says since when, why and what to do, until it accepts a notification again', async () => {
  receiver.behaviour = answer(503);
  const key = await client.completedOrder();
  await usher.attemptEnded(key, 1);
  const failing = await pages.get(path());
  expect(failing).toMatch(/<\/a> of\s+<a [^>]*>A test client<\/a>\s+has failed since\s+<time/);
  expect(failing).toContain('The receiver is not available at present (503).');
  receiver.behaviour = answer(200);
  await usher.webhook(key, 'SUCCESS');
  await eventually('it fails no more', async () => !(await pages.get(path())).includes('has failed since'));
});

test('the alarm of a host ends when a notification reaches the new Notify URL, and comes back with its next FAILED', async () => {
  const moved = await usher.client(`${receiver.url}/old`);
  const next = await TestReceiver.start();
  receiver.behaviour = answer(503);
  await usher.webhook(await moved.completedOrder(), 'FAILED');
  const pageOf = () => pages.get(`/ops/clients/${moved.id}`);
  expect(await pageOf()).toContain('has failed since');
  await usher.clients.setNotifyUrl(moved.id, next.url);
  expect(await pageOf()).toContain('has failed since');
  await usher.webhook(await moved.completedOrder(), 'SUCCESS');
  expect(await pageOf()).not.toContain('has failed since');
  expect(await pages.get(path())).not.toContain('has failed since');
  await usher.webhook(await moved.completedOrder({ notifyUrl: `${receiver.url}/old` }), 'FAILED');
  expect(await pageOf()).toContain('has failed since');
  // An order has this Notify URL of its own, so that a delivery to the registered one tells nothing about it.
  await usher.webhook(await moved.completedOrder(), 'SUCCESS');
  expect(await pageOf()).toContain('has failed since');
  receiver.behaviour = answer(200);
  next.close();
});

test('the list and the page of a receiver show the figures of the time before', async () => {
  const now = Date.now();
  const webhook = { clientId: client.id, notifyUrl: receiver.url, createdAt: now };
  const before = now - 26 * 3_600_000;
  await usher.dataSource.transaction((manager) =>
    addOutcomes(manager, [
      { webhook, endedAt: before, attempt: { durationMs: 4_000, hasFailed: false }, ended: 'SUCCESS' },
    ]),
  );
  const text = await eventually('the list has them', async () => {
    const page = await pages.get('/ops/receivers');
    return page.includes('was 100 %') ? page : null;
  });
  expect(cellsOf(text, host)[6]).toMatch(/ms was 4\.\d s$|ms was 5 s$/);
  expect(await pages.get(path())).toMatch(/<dt>Succeeded<\/dt>\s*<dd class="">[^<]* % <span class="dim">was 100 %/);
  expect(await pages.get(`${path()}?range=1h`)).not.toContain('>was ');
});

test('an operator sends a test to the Notify URL of a client there; it is audited, and not stored', async () => {
  const before = receiver.arrivals.length;
  const posted = await pages.post(`${path()}/test`, { client: client.id });
  expect(posted.status).toBe(200);
  expect(posted.text).toContain('The test was accepted.');
  expect(receiver.arrivals.length).toBe(before + 1);
  expect(receiver.arrivals.at(-1)?.headers).toMatchObject({
    'x-webhook-test': 'true',
    'x-signature': expect.any(String),
  });
  receiver.behaviour = (response) => void response.writeHead(500).end(HOSTILE);
  const failed = await pages.post(`${path()}/test`, { client: client.id });
  expect(failed.text).toContain('The test failed: the receiver answered 500.');
  expect(failed.text).toContain('&lt;script&gt;');
  expect(failed.text).not.toMatch(/<script>|<img/);
  receiver.behaviour = answer(200);
  const audit = usher.running.app.get(AuditLog, { strict: false });
  const tests = await audit.list({ subject: `client:${client.id}`, action: 'webhook.tested' });
  expect(tests.map(({ actor, detail }) => [actor, detail.host, detail.outcome])).toEqual([
    ['operator:ops', host, 'refused'],
    ['operator:ops', host, 'delivered'],
  ]);
});

test('a test goes only to a client with a Notify URL there, and a viewer cannot send one', async () => {
  const before = receiver.arrivals.length;
  const other = await usher.client('http://127.0.0.1:19999/notify');
  for (const id of [other.id, 'none', '', HOSTILE]) {
    const { status, text } = await pages.post(`${path()}/test`, { client: id });
    expect(status).toBe(422);
    expect(text).toContain('The client has no Notify URL at this host');
  }
  const viewer = await OperatorBrowser.of(usher, 'vera', 'viewer');
  expect((await viewer.get(path())).text).not.toContain('Send a test');
  expect((await viewer.post(`${path()}/test`, { client: client.id }, { page: null })).status).toBe(403);
  expect(receiver.arrivals.length).toBe(before);
});

test('an unknown host has an empty page, and a text that is no host is not found', async () => {
  expect(await pages.get('/ops/receivers/nobody.example')).toContain('No attempts in the last 24 hours.');
  const long = `${'long.'.repeat(49)}example:65535`;
  expect(await pages.get(`/ops/receivers/${encodeURIComponent(long)}`)).toContain(`Receiver ${long}`);
  const hostile = await pages.get(`/ops/receivers/${encodeURIComponent(`<script>alert(1)</script>`)}`);
  expect(hostile).toContain('&lt;script&gt;alert(1)&lt;/script&gt;');
  for (const odd of ['%00', 'a%20b', 'x'.repeat(270)]) await pages.get(`/ops/receivers/${odd}`, 404);
});

test('the page of a receiver names all its clients before its deliveries are paused, and resumes them', async () => {
  const unsent = await usher.client(`${receiver.url}/later`);
  const before = await pages.get(path());
  const form = before.slice(before.indexOf('<h2>Pause</h2>'));
  for (const { id } of [client, unsent]) expect(form).toContain(`href="/ops/clients/${id}"`);
  expect((await pages.post(`${path()}/pause`, { reason: 'Maintenance' })).location).toBe(`${path()}?done=pause`);
  expect(await pages.get(path())).toMatch(/Deliveries have been paused since[^]*Maintenance/);
  expect((await pages.post(`${path()}/resume`)).location).toBe(`${path()}?done=resume`);
  expect(await pages.get(path())).not.toContain('Deliveries have been paused since');
});
