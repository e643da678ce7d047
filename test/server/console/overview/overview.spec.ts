import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { FailingHost } from '../../../../src/webhooks/contact/failing-host.entity.js';
import { addOutcomes, type RecordedOutcome } from '../../../../src/webhooks/figures/add-outcomes.js';
import { DeliveryFigure } from '../../../../src/webhooks/figures/delivery-figure.entity.js';
import { Webhook } from '../../../../src/webhooks/webhook.entity.js';
import { eventually } from '../../../support/eventually.js';
import { type TestClient, TestUsher } from '../../../support/usher.js';
import { ConsolePages, HOSTILE } from '../console-pages.js';

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

let usher: TestUsher;
let client: TestClient;
const pages = new ConsolePages(() => usher);

beforeAll(async () => {
  // Without a worker, so that only the test records outcomes.
  usher = await TestUsher.start({ USHER_ROLE: 'api' });
  client = await usher.client();
});
afterAll(() => usher.stop());
beforeEach(async () => {
  await usher.dataSource.manager.clear(DeliveryFigure);
  await usher.dataSource.manager.clear(FailingHost);
});

const outcome = (endedAt: number, hasFailed: boolean, more: Partial<RecordedOutcome> = {}): RecordedOutcome => ({
  // Received within 80 ms, in the bucket from 50 to 100.
  webhook: { clientId: client.id, notifyUrl: 'https://receiver.example/notify', createdAt: endedAt - 80 },
  endedAt,
  attempt: { durationMs: 30, hasFailed },
  ended: hasFailed ? null : 'SUCCESS',
  ...more,
});

const record = (outcomes: RecordedOutcome[]): Promise<void> =>
  usher.dataSource.transaction((manager) => addOutcomes(manager, outcomes));

const overviewWith = (what: RegExp): Promise<string> =>
  eventually(`the overview shows ${what}`, async () => {
    const text = await pages.get('/ops');
    return what.test(text) ? text : null;
  });

/** The value of a tile, as text. */
const tile = (text: string, name: string): string =>
  new RegExp(`<dt>${name}</dt>\\s*<dd class="[a-z]*">([^<]*)<`).exec(text)?.[1]?.trim() ?? `no tile ${name}`;

test('a fresh installation is told what will be here and how to begin', async () => {
  const text = await overviewWith(/class="empty"/);
  expect(text).toMatch(/Create the first one|No notification was sent in the last 7 days/);
  expect(tile(text, 'Attempts succeeded, 1 h')).toBe('–');
  expect(text).toContain('Nothing is pending: every notification has ended.');
});

test('success rate, ended notifications and times to receipt are those of the recorded outcomes, in each range', async () => {
  const now = Date.now();
  const times = (count: number, make: (n: number) => RecordedOutcome) =>
    Array.from({ length: count }, (_, n) => make(n));
  await record([
    ...times(8, () => outcome(now, false)),
    ...times(2, (n) => outcome(now, true, { ended: n === 0 ? 'FAILED' : null })),
    // In the day alone, and in the week alone.
    ...times(10, () => outcome(now - 3 * HOUR_MS, true)),
    ...times(20, () => outcome(now - 72 * HOUR_MS, false)),
  ]);
  const text = await overviewWith(/80 %/);
  expect(tile(text, 'Attempts succeeded, 1 h')).toBe('80 %');
  expect(tile(text, 'Delivered, 1 h')).toBe('8');
  expect(tile(text, 'Ended FAILED, 1 h')).toBe('1');
  expect(tile(text, 'Time to receipt p50, 1 h')).toBe('75 ms');
  expect(tile(text, 'Time to receipt p95, 1 h')).toBe('98 ms');
  const summaries = [...text.matchAll(/aria-label="Attempts\. ([^"]*) Arrow keys show the values\."/g)].map(
    ([, summary]) => summary,
  );
  expect(summaries).toEqual([
    '10 attempts, 2 failed (20 %).',
    '20 attempts, 12 failed (60 %).',
    '40 attempts, 12 failed (30 %).',
  ]);
  expect(text).toMatch(/<title>\s*\d\d:\d\d UTC: 8 succeeded, 2 failed\s*<\/title>/);
  // The same numbers as a table, for those who do not see the chart.
  expect(text.match(/<summary>Numbers<\/summary>/g)).toHaveLength(3);
});

test('what is wrong comes first: late notifications without a worker, then failing receivers with since when, why and what to do', async () => {
  const { webhook } = await usher.webhooks.notify({
    referenceId: 'late-1',
    clientId: client.id,
    notifyUrl: 'https://late.example/notify',
    data: {},
  });
  const { manager } = usher.dataSource;
  await manager.update(Webhook, { id: webhook.id }, { nextAttemptAt: Date.now() - 10 * MINUTE_MS });
  const moments = { firstEndedFailedAt: null, recoveredAt: null, announcedAt: null, messageDueAt: null };
  const failing = { clientId: client.id, lastFailedAt: Date.now(), lastError: HOSTILE, ...moments };
  await manager.insert(FailingHost, [
    { ...failing, host: 'cert.example', failingSince: Date.now() - 3 * HOUR_MS, lastDiagnosis: 'tls-expired' },
    { ...failing, host: 'odd.example', failingSince: Date.now() - HOUR_MS, lastDiagnosis: null },
    { ...failing, host: 'back.example', failingSince: 1, lastDiagnosis: null, recoveredAt: Date.now() },
    { ...failing, host: 'old.example', failingSince: 1, lastDiagnosis: null, lastFailedAt: Date.now() - 25 * HOUR_MS },
  ]);
  const text = await overviewWith(/cert\.example[^]*odd\.example/);
  const late = await overviewWith(/Notifications are late/);
  const order = ['No worker runs', 'Notifications are late: the oldest of 1', 'cert.example', 'odd.example'];
  const places = order.map((part) => late.indexOf(part));
  expect(places).toEqual([...places].sort((one, other) => one - other));
  expect(places).not.toContain(-1);
  expect(late).toContain('USHER_ROLE=worker');
  expect(text).toMatch(/href="\/ops\/receivers\/cert\.example">cert\.example<\/a> of\s+<a href="\/ops\/clients\//);
  expect(text).toMatch(/has failed since\s+<time [^>]*><span>[^<]+ UTC<\/span> <span>· 3 h ago<\/span\s*><\/time\s*>/);
  expect(text).toContain('The certificate of the receiver has expired. Renew the certificate');
  expect(text).toContain('&lt;script&gt;');
  expect(text).not.toMatch(/back\.example|old\.example/);
  await overviewWith(/A test client<\/a>\s*<\/div>\s*<\/td>\s*<td[^>]*>\s*<div>1</);
});
