import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { queueTable } from '../../../../src/server/console/overview/problems.js';
import { newId } from '../../../../src/values/identifier.js';
import { AuditLog } from '../../../../src/audit/audit.module.js';
import { WebhookResends } from '../../../../src/webhooks/undelivered/webhook-resends.js';
import { noteAttempts } from '../../../../src/webhooks/contact/failing-hosts.js';
import { FailingHost } from '../../../../src/webhooks/contact/failing-host.entity.js';
import { addOutcomes, type RecordedOutcome } from '../../../../src/webhooks/figures/add-outcomes.js';
import { DeliveryFigure } from '../../../../src/webhooks/figures/delivery-figure.entity.js';
import { Webhook } from '../../../../src/webhooks/webhook.entity.js';
import { eventually } from '../../../support/eventually.js';
import { type TestClient, TestUsher } from '../../../support/usher.js';
import { OperatorBrowser } from '../../../support/operator-browser.js';
import { ConsolePages, HOSTILE } from '../console-pages.js';
import { insertFailed, references } from '../../../webhooks/undelivered/support.js';
import { lose } from './lose.js';

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

const overviewWith = (what: RegExp, path = '/ops'): Promise<string> =>
  eventually(`the overview shows ${what}`, async () => {
    const text = await pages.get(path);
    return what.test(text) ? text : null;
  });

/** The value of a tile, as text. */
const tile = (text: string, name: string): string =>
  new RegExp(`<dt>${name}</dt>\\s*<dd class="[a-z]*">\\s*(?:<a[^>]*>)?([^<]*)<`).exec(text)?.[1]?.trim() ??
  `no tile ${name}`;

test('the overview of a fresh installation says what it will show and how to begin', async () => {
  const text = await overviewWith(/class="empty"/);
  expect(text).toMatch(/Create the first one|No notification was sent in the last 24 hours/);
  expect(tile(text, 'Attempts succeeded')).toBe('–');
  expect(text).toContain('Nothing is pending: every notification has ended.');
});

test('success rate, ended notifications and times to receipt are those of the recorded outcomes, in each range', async () => {
  const now = Date.now();
  const times = (count: number, make: (n: number) => RecordedOutcome) =>
    Array.from({ length: count }, (_, n) => make(n));
  await record([
    ...times(8, () => outcome(now, false)),
    ...times(2, (n) => outcome(now, true, { ended: n === 0 ? 'FAILED' : null })),
    // In the day, in the week, and in the month alone.
    ...times(10, () => outcome(now - 3 * HOUR_MS, true)),
    ...times(20, () => outcome(now - 72 * HOUR_MS, false)),
    ...times(10, () => outcome(now - 20 * 24 * HOUR_MS, false)),
  ]);
  const text = await overviewWith(/80 %/, '/ops?range=1h');
  expect(tile(text, 'Attempts succeeded')).toBe('80 %');
  expect(tile(text, 'Delivered')).toBe('8');
  expect(tile(text, 'Ended FAILED')).toBe('1');
  expect(tile(text, 'Time to receipt p50')).toBe('75 ms');
  expect(tile(text, 'Time to receipt p95')).toBe('98 ms');
  const summaryOf = async (range: string) =>
    /aria-label="Attempts\. ([^"]*) Arrow keys show the values\."/.exec(
      await overviewWith(/aria-label="Attempts/, `/ops?range=${range}`),
    )?.[1];
  expect(await summaryOf('1h')).toBe('10 attempts, 2 failed (20 %).');
  expect(await summaryOf('24h')).toBe('20 attempts, 12 failed (60 %).');
  expect(await summaryOf('7d')).toBe('40 attempts, 12 failed (30 %).');
  expect(await summaryOf('30d')).toMatch(/^50 attempts, 12 failed \(24 %\)/);
  expect(text).toMatch(/<title>\s*\d\d:\d\d UTC: 8 succeeded, 2 failed\s*<\/title>/);
  // The same numbers as a table, for those who do not see the chart.
  expect(text).toContain('<summary>Numbers</summary>');
});

test('the overview says what is wrong with Usher, and for each failing receiver since when, why and what to do', async () => {
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
  const order = [
    'clients fails; no notification lost',
    'No worker runs',
    'Notifications are late: the oldest of 1',
    'cert.example',
    'odd.example',
  ];
  const places = order.map((part) => late.indexOf(part));
  expect(places).toEqual([...places].sort((one, other) => one - other));
  expect(places).not.toContain(-1);
  expect(late).toContain('USHER_ROLE=worker');
  expect(text).toMatch(/1 of \d+ clients fails; no notification lost/);
  expect(text).toMatch(/href="\/ops\/receivers\/cert\.example">cert\.example<\/a>\s+has failed since/);
  expect(text).toMatch(/has failed since\s+<time [^>]*><span>[^<]+ UTC<\/span> <span>· 3 h ago<\/span\s*><\/time\s*>/);
  expect(text).toContain('The certificate of the receiver has expired. Renew the certificate');
  expect(text).toContain('&lt;script&gt;');
  expect(text).not.toMatch(/back\.example|old\.example/);
  await overviewWith(/A test client<\/a>\s*<\/div>\s*<\/td>\s*<td[^>]*>\s*<div>1</);
});

test('a queue that can be read but accepts no jobs is down', () => {
  const queue = { queue: 'usher-webhook', isPaused: false, limit: null, jobs: {} };
  expect(queueTable([queue], null).text).toContain('>down<');
  expect(queueTable([queue], true).text).toContain('>up<');
});

test('clients are sorted by their lost notifications, beside those of a week before, and the first sentence has the sum', async () => {
  const now = Date.now();
  const [few, many, again] = [await usher.client(), await usher.client(), await usher.client()];
  // A pause held it for three days.
  await lose(few, 'few-1', now - MINUTE_MS, now - 72 * HOUR_MS);
  for (const n of [1, 2, 3]) await lose(many, `many-${n}`, now - 2 * HOUR_MS - n);
  await lose(many, 'many-before-1', now - 7 * 24 * HOUR_MS - MINUTE_MS);
  await lose(many, 'many-long-ago', now - 9 * 24 * HOUR_MS);
  const resent = await lose(again, 'again-1', now - HOUR_MS);
  const { manager } = usher.dataSource;
  const row = await manager.findOneByOrFail(Webhook, { id: resent });
  await manager.insert(Webhook, { ...row, id: newId('sandbox', now), status: 'SUCCESS', liveKey: 'again-1' });
  const text = await overviewWith(/4 notifications not delivered in the last 24 hours/);
  expect(text).toMatch(/No client fails; 4 notifications/);
  const rows = [...text.matchAll(/<tr role="row">[^]*?<\/tr>/g)].map(([row]) => row);
  const of = (client: TestClient) => rows.findIndex((row) => row.includes(`title="${client.id}"`));
  expect([of(many) < of(few), of(again)]).toEqual([true, -1]);
  const cells = rows[of(many)]?.replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ');
  expect(cells).toMatch(/A test client 3 3 was 1 Send again/);
  const listed = /href="(\/ops\/notifications\?[^"]*)"/.exec(rows[of(many)] ?? '')?.[1]?.replaceAll('&amp;', '&') ?? '';
  expect((await pages.get(listed)).match(/data-name="Notification"/g)).toHaveLength(3);
  expect(await overviewWith(/1 notification not delivered in the last hour/, '/ops?range=1h')).toContain(few.id);
});

test('a count is not exact if a notification that ended in the range is not among the newest ones', async () => {
  const [held, counted] = [await usher.client(), await usher.client()];
  await lose(held, 'held-1', Date.now() - MINUTE_MS, Date.now() - 72 * HOUR_MS);
  for (const one of [held, counted]) await insertFailed(one, references(one.id, 10_000), 48);
  await lose(counted, 'counted-1', Date.now() - MINUTE_MS);
  const text = await overviewWith(new RegExp(`title="${counted.id}"`));
  const rows = [...text.matchAll(/<tr role="row">[^]*?<\/tr>/g)].map(([row]) => row);
  const cellsOf = ({ id }: TestClient) =>
    rows
      .find((row) => row.includes(`title="${id}"`))
      ?.replace(/<[^>]*>/g, ' ')
      .replace(/\s+/g, ' ');
  expect(cellsOf(held)).toMatch(/A test client 0 or more 1 /);
  expect(cellsOf(counted)).toMatch(/A test client 1 1 /);
  expect(text).toContain('1 or more notifications not delivered');
});

test('the lost notifications of a client are sent again from its row: all of the range, and none of another client', async () => {
  const one = await usher.client();
  const since = Date.now() - HOUR_MS;
  await lose(one, 'resend-1', since + MINUTE_MS, since - 72 * HOUR_MS);
  await lose(one, 'resend-2', since - MINUTE_MS);
  const posted = await pages.post('/ops/resend', { client: one.id, since: `${since}`, until: `${Date.now()}` });
  const id = /^\/ops\/resends\/(\w+)$/.exec(posted.location)?.[1] ?? posted.text;
  const resends = usher.running.app.get(WebhookResends, { strict: false });
  expect(await resends.get(id)).toMatchObject({ clientId: one.id, selected: 1, actor: 'operator:ops' });
  const { location } = await pages.post('/ops/resend', { client: one.id, since: 'x', until: '' });
  expect(await resends.get(location.split('/').at(-1)!)).toMatchObject({ clientId: one.id, selected: 0 });
});

test('an alarm is acknowledged with a note, which everybody sees, and returns with the next FAILED notification', async () => {
  const one = await usher.client();
  const host = 'known.example';
  const fails = (endedAt: number) =>
    usher.dataSource.transaction((manager) =>
      noteAttempts(manager, [
        {
          clientId: one.id,
          host,
          endedAt,
          madeAt: endedAt,
          failure: { error: 'answered 500', diagnosis: 'not-found', endedFailed: true },
        },
      ]),
    );
  await fails(Date.now() - MINUTE_MS);
  await overviewWith(/known\.example[^]*<summary>Acknowledge/);
  const given = { client: one.id, hosts: host, range: '7d' };
  const empty = await pages.post('/ops/acknowledge', { ...given, note: ' ' });
  expect([empty.status, empty.text.includes('The note must have 1 to 500 characters')]).toEqual([422, true]);
  const done = await pages.post('/ops/acknowledge', { ...given, note: HOSTILE });
  expect(done).toMatchObject({ status: 303, location: '/ops?range=7d&done=acknowledge' });
  expect(await pages.get(done.location)).toContain('Acknowledged. It is an alarm again');
  // At once, although the page remembers its figures.
  for (const range of ['24h', '7d']) expect(await pages.get(`/ops?range=${range}`)).not.toContain(host);
  for (const path of [`/ops/clients/${one.id}`, `/ops/receivers/${host}`])
    if (path.includes(one.id))
      expect(await pages.get(path)).toMatch(/Acknowledged by operator:ops <time[^]*&lt;script&gt;/);
  const audit = usher.running.app.get(AuditLog, { strict: false });
  expect(await audit.list({ subject: `client:${one.id}`, action: 'alarm.acknowledged' })).toMatchObject([
    { actor: 'operator:ops', detail: { hosts: host, note: HOSTILE } },
  ]);
  expect((await pages.post('/ops/acknowledge', { ...given, note: 'again' })).status).toBe(409);
  await fails(Date.now() + 1_000);
  await overviewWith(/known\.example[^]*<summary>Acknowledge/);
});

test('a viewer sees the lost notifications, and can neither send them again nor acknowledge an alarm', async () => {
  await lose(client, 'viewer-1', Date.now() - MINUTE_MS);
  const viewer = await OperatorBrowser.of(usher, 'vera', 'viewer');
  const text = await overviewWith(/Send again/).then(async () => (await viewer.get('/ops')).text);
  expect(text).toContain('not delivered in the last 24 hours');
  expect(text).not.toMatch(/Send again|<summary>Acknowledge|<summary>Pause|New client/);
  for (const action of ['resend', 'acknowledge', 'pause', 'resume', 'resume-queue'])
    expect((await viewer.post(`/ops/${action}`, {}, { page: null })).status).toBe(403);
});
