import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { DiagnosisCode } from '../../../../src/webhooks/transport/diagnosis.js';
import { Webhook, WebhookAttempt } from '../../../../src/webhooks/webhook.entity.js';
import { type TestClient, TestUsher } from '../../../support/usher.js';
import { HOUR_MS, insertFailed, references } from '../../../webhooks/undelivered/support.js';
import { ConsolePages, HOSTILE, listedIds } from '../console-pages.js';

let usher: TestUsher;
const pages = new ConsolePages(() => usher);
beforeAll(async () => {
  usher = await TestUsher.start();
});
afterAll(() => usher.stop());

const list = async (filter: Record<string, string>): Promise<string[]> =>
  listedIds(await pages.get(`/ops/notifications?${new URLSearchParams(filter)}`));

/** Gives the last attempts of these webhooks a reason. */
async function failedBy(ids: string[], diagnosis: DiagnosisCode): Promise<void> {
  const rows = ids.map((webhookId) => ({
    webhookId,
    number: 1,
    startedAt: 1,
    durationMs: 5,
    error: 'it failed',
    diagnosis,
  }));
  await usher.dataSource.manager.insert(WebhookAttempt, rows);
}

async function named(name: string): Promise<TestClient> {
  const client = await usher.client();
  await usher.dataSource.query(`UPDATE usher_client SET name = '${name}' WHERE id = '${client.id}'`);
  return client;
}

test('each filter alone, and all of them together, show exactly the notifications that match, the newest first', async () => {
  const [odeon, roxy] = [await named('Odeon'), await named('Roxy')];
  const at = (host: string) => ({ notifyUrl: `http://${host}/notify` });
  const [old = ''] = await insertFailed(odeon, ['f-old'], 48, at('one.example'));
  const [second = ''] = await insertFailed(odeon, ['f-second'], 3, at('TWO.example:8080'));
  const [third = ''] = await insertFailed(roxy, ['f-third'], 2, at('one.example:443'));
  const sent = { status: 'SUCCESS' as const, liveKey: 'f-sent' };
  const [delivered = ''] = await insertFailed(roxy, ['f-sent'], 1, { ...sent, ...at('one.example') });
  await failedBy([old, third], 'tls-expired');
  await failedBy([second], 'gone');

  expect(await list({ client: odeon.id })).toEqual([second, old]);
  expect(await pages.get(`/ops/notifications?client=${odeon.id}`)).toMatch(/Client: <a [^>]*>Odeon<\/a>/);
  expect(await list({ client: 'odeon' })).toEqual([second, old]);
  expect(await list({ client: 'rox' })).toEqual([delivered, third]);
  expect(await list({ host: 'one.example' })).toEqual([delivered, third, old]);
  expect(await list({ host: 'http://two.example:8080/any?x' })).toEqual([second]);
  expect(await list({ reason: 'tls-expired' })).toEqual([third, old]);
  expect(await list({ status: 'SUCCESS' })).toEqual([delivered]);
  expect(await list({ status: 'FAILED', since: '24h' })).toEqual([third, second]);
  expect(await list({ until: new Date(Date.now() - 86_400_000).toISOString() })).toEqual([old]);
  expect(await list({ order: 'f-third' })).toEqual([third]);
  await usher.dataSource.manager.update(Webhook, { id: second }, { finishedAt: Date.now() - 48 * HOUR_MS });
  await usher.dataSource.manager.update(Webhook, { id: old }, { finishedAt: Date.now() });
  expect(await list({ status: 'FAILED', endedSince: '24h' })).toEqual([third, old]);
  const all = { status: 'UNRESOLVED', client: 'Odeon', host: 'one.example', reason: 'tls-expired', since: '72h' };
  expect(await list(all)).toEqual([old]);
  expect(await list({ ...all, until: '50h' })).toEqual([]);
  expect(await list({ status: 'PENDING', reason: 'gone' })).toEqual([]);
});

test('a page has 50 notifications, and its link to older ones continues exactly there, with the filter', async () => {
  const client = await usher.client();
  const ids = await insertFailed(client, references('page', 120));
  const newestFirst = [...ids].sort().reverse();
  let path = `/ops/notifications?client=${client.id}&status=FAILED`;
  const seen: string[] = [];
  for (let page = 1; page <= 3; page += 1) {
    const text = await pages.get(path);
    seen.push(...listedIds(text));
    path = /rel="next" href="([^"]+)"/.exec(text)?.[1]?.replaceAll('&amp;', '&') ?? '';
    expect(path === '').toBe(page === 3);
  }
  expect(seen).toEqual(newestFirst);
});

test('the list is sorted by when notifications were made or ended, in both directions, across its pages', async () => {
  const client = await named('Orders');
  const [first = '', second = '', third = ''] = await insertFailed(client, ['o-1', 'o-2', 'o-3'], 5);
  for (const [id, finishedAt] of [
    [first, 3_000],
    [second, 1_000],
    [third, 2_000],
  ] as const)
    await usher.dataSource.manager.update('Webhook', { id }, { finishedAt });
  const ofClient = (sort: string, more = {}) => list({ client: client.id, sort, ...more });
  const [oldest, middle, newest] = [first, second, third].sort();
  expect(await ofClient('Created')).toEqual([oldest, middle, newest]);
  expect(await ofClient('-Created')).toEqual([newest, middle, oldest]);
  expect(await ofClient('Ended')).toEqual([second, third, first]);
  expect(await ofClient('-Ended')).toEqual([first, third, second]);
  expect(await ofClient('-Ended', { after: first })).toEqual([third, second]);
  expect(await ofClient('Ended', { after: second })).toEqual([third, first]);
  expect(await ofClient('Created', { after: oldest })).toEqual([middle, newest]);
  expect(await ofClient('Order', { since: '1h' })).toEqual([]);
});

test('a filter with a fault is 400, with the fault at its field and all values kept', async () => {
  const filter = {
    client: HOSTILE,
    host: 'a b',
    since: 'yesterday',
    until: '2026-02-30',
    order: 'a b',
    reason: 'luck',
  };
  const text = await pages.get(`/ops/notifications?${new URLSearchParams(filter)}`, 400);
  const faults = ['No client has this id or name', 'Give the host', 'Give a duration', 'An order key has no spaces'];
  for (const fault of faults) expect(text).toContain(`<span class="field-fault">${fault}`);
  for (const value of ['value="a b"', 'value="yesterday"', 'value="2026-02-30"', 'value="&lt;script&gt;'])
    expect(text).toContain(value);
  expect(await pages.get('/ops/notifications?since=1h&until=2h', 400)).toContain(
    'This time must be later than the one before it',
  );
  // Longer ago than 1970.
  await pages.get('/ops/notifications?status=FAILED&since=999999999d');
  for (const odd of ['status=constructor', 'reason=__proto__'])
    expect(await pages.get(`/ops/notifications?${odd}`, 400)).toContain('Choose one from the list.');
  expect(await pages.get('/ops/notifications?resend=other', 400)).toContain('There is no such request.');
});

test('the list asks which client is meant if several have the name', async () => {
  const [one, other] = [await named('Twin 1'), await named('Twin 2')];
  const text = await pages.get('/ops/notifications?client=twin&status=FAILED', 400);
  for (const { id } of [one, other]) expect(text).toContain(`href="/ops/notifications?status=FAILED&amp;client=${id}"`);
});

test('the list says in words why a notification failed, and shows names, hosts and errors as text', async () => {
  const client = await usher.client();
  await usher.dataSource.manager.query(
    `UPDATE usher_client SET name = '${HOSTILE.replaceAll("'", "''")}' WHERE id = '${client.id}'`,
  );
  const [id = ''] = await insertFailed(client, [HOSTILE], 1, { notifyUrl: 'http://h.example/<b>' });
  await usher.dataSource.manager.insert(WebhookAttempt, {
    webhookId: id,
    number: 1,
    startedAt: 1,
    durationMs: 5,
    error: HOSTILE,
    diagnosis: 'gone',
    responseSnippet: HOSTILE,
  });
  const text = await pages.get(`/ops/notifications?client=${client.id}`);
  expect(text).toContain('The receiver says that this address is gone for good (410).');
  expect(text.match(/&lt;script&gt;/g)!.length).toBeGreaterThan(3);
  const one = await pages.get(`/ops/webhooks/${id}`);
  expect(one).toContain('Register the new Notify URL. Pending notifications still go to this one');
  expect(one.match(/&lt;script&gt;/g)!.length).toBeGreaterThan(3);
});

test('an empty list says what it will show', async () => {
  const client = await usher.client();
  expect(await pages.get(`/ops/notifications?client=${client.id}`)).toContain('No notification matches this filter.');
});
