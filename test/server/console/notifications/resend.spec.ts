import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { getQueueToken } from '@nestjs/bullmq';
import type { Queue } from 'bullmq';
import { AuditLog } from '../../../../src/audit/audit.module.js';
import { RETRY_RUN_QUEUE } from '../../../../src/webhooks/queue/retry-run.js';
import { ResendWork } from '../../../../src/webhooks/undelivered/resend-work.js';
import { WebhookAttempt } from '../../../../src/webhooks/webhook.entity.js';
import { eventually } from '../../../support/eventually.js';
import { OperatorBrowser } from '../../../support/operator-browser.js';
import { answer, TestReceiver } from '../../../support/receiver.js';
import { ONE_ATTEMPT, TestUsher } from '../../../support/usher.js';
import { insertFailed, references, resendsOf } from '../../../webhooks/undelivered/support.js';
import { ConsolePages, selectionOf, tile } from '../console-pages.js';

let usher: TestUsher;
let receiver: TestReceiver;
const pages = new ConsolePages(() => usher);
beforeAll(async () => {
  usher = await TestUsher.start(ONE_ATTEMPT);
  receiver = await TestReceiver.start();
});
afterAll(async () => {
  await usher.stop();
  receiver.close();
});

test('an operator sends selected notifications again, and the list tells them apart from those that still need attention', async () => {
  const client = await usher.client(receiver.url);
  const ids = await insertFailed(client, references('chosen', 3));
  const [first = '', second = '', third = ''] = ids;
  const before = await pages.get(`/ops/notifications?client=${client.id}`);
  for (const id of ids) expect(before).toContain(`name="select.${id}"`);
  const nothing = await pages.post('/ops/notifications/resend', { client: client.id });
  // The page is still that of this client, and its address is not that of a page which could be read again.
  expect(nothing.text).toContain(`href="/ops/notifications?client=${client.id}&amp;select=all"`);
  expect(nothing.text).not.toContain('Updates every 10 s');
  const { status, location } = await pages.post('/ops/notifications/resend', selectionOf([first, second]));
  expect([status, location]).toEqual([303, expect.stringMatching(/^\/ops\/resends\/\w{22}$/)]);
  const progress = await pages.finished(location);
  expect([tile(progress, 'Selected'), tile(progress, 'Sent again'), tile(progress, 'Left out')]).toEqual([
    '2',
    '2',
    '0',
  ]);
  await usher.webhook('chosen-0', 'SUCCESS');
  await usher.webhook('chosen-1', 'SUCCESS');

  expect((await pages.listed('UNRESOLVED', client.id)).sort()).toEqual([third]);
  expect((await pages.listed('RESENT', client.id)).filter((id) => ids.includes(id)).sort()).toEqual(
    [first, second].sort(),
  );
  const text = await pages.get(`/ops/notifications?status=RESENT&client=${client.id}`);
  const [resent] = await usher.webhooks.find('chosen-0');
  expect(text).toMatch(
    new RegExp(`resent as</span> <span[^]{0,80}/ops/webhooks/${resent!.id}"[^]*?badge good">SUCCESS`),
  );
  expect(text).not.toContain(`name="select.${first}"`);
  const { body } = await usher.request('GET', `/ops/notifications.csv?client=${client.id}`, pages.headers);
  expect(body.text).toMatch(/^"Notification","Status","Resent as",/);
  expect(body.text).toContain(`"${first}","FAILED","${resent!.id}"`);
  expect(body.text).toContain(`"${third}","FAILED",""`);
  const one = await pages.get(`/ops/webhooks/${first}`);
  expect(one).toContain('Notifications of this order');
  expect(one).toContain(`/ops/webhooks/${resent!.id}"`);
  expect(one).not.toContain('<button class="primary">Send again');
});

test('a second press, other ids and a page of another site send nothing twice', async () => {
  const client = await usher.client(receiver.url);
  const [id = ''] = await insertFailed(client, ['once']);
  for (let press = 1; press <= 3; press += 1) await pages.post('/ops/notifications/resend', selectionOf([id]));
  await usher.webhook('once', 'SUCCESS');
  expect(await resendsOf(usher, client)).toEqual(new Map([[id, 1]]));
  const nothing = await pages.post('/ops/notifications/resend', {
    ...selectionOf(['none', '../x']),
    client: client.id,
  });
  expect([nothing.status, nothing.text]).toEqual([400, expect.stringContaining('Select at least one notification.')]);
  const foreign = new ConsolePages(() => usher, {
    authorization: 'Basic b3BzOm9wcw==',
    'sec-fetch-site': 'cross-site',
  });
  expect((await foreign.post('/ops/notifications/resend', selectionOf([id]))).status).toBe(403);
});

test('an operator sends all that match a filter again, by client, receiver, reason and time, after a confirmation', async () => {
  const [client, other] = [await usher.client(receiver.url), await usher.client(receiver.url)];
  const at = { notifyUrl: 'http://broken.example/notify' };
  const wanted = await insertFailed(client, references('all', 70), 2, at);
  const unwanted = [
    ...(await insertFailed(client, ['too-old'], 30, at)),
    ...(await insertFailed(client, ['other-host'], 2)),
    ...(await insertFailed(client, ['other-reason'], 2, at)),
  ];
  const ofOther = await insertFailed(other, ['other-client'], 2, at);
  const reasonOf = (id: string) => (id === unwanted[2] ? 'gone' : 'tls-expired');
  const attempts = [...wanted, ...unwanted, ...ofOther].map((webhookId) => ({
    webhookId,
    number: 1,
    startedAt: 1,
    durationMs: 1,
    error: 'it failed',
    diagnosis: reasonOf(webhookId) as 'gone' | 'tls-expired',
  }));
  await usher.dataSource.manager.insert(WebhookAttempt, attempts);
  const filter = {
    status: 'UNRESOLVED',
    client: client.id,
    host: 'broken.example',
    reason: 'tls-expired',
    since: '24h',
  };
  const path = `/ops/notifications?${new URLSearchParams(filter)}`;
  const shown = await pages.counted(path, 'Send all that match this filter again: 70 of 1 client');
  expect(shown).toContain('action="/ops/notifications/resend-all"');
  const ticked = (text: string) => text.match(/name="select\.\w+"\s+value="yes"\s+checked/g)?.length ?? 0;
  expect(ticked(shown)).toBe(0);
  const all = /href="([^"]*select=all[^"]*)"/.exec(shown)?.[1]?.replaceAll('&amp;', '&') ?? '';
  expect(ticked(await pages.get(all))).toBe(50);

  const refused = await pages.post('/ops/notifications/resend-all', filter);
  expect([refused.status, refused.text]).toEqual([422, expect.stringContaining('Tick the box to confirm')]);
  expect(refused.text).toContain('value="broken.example"');
  const faulty = await pages.post('/ops/notifications/resend-all', { ...filter, host: 'a b', confirmed: 'yes' });
  expect([faulty.status, faulty.text]).toEqual([400, expect.stringContaining('Give the host')]);
  expect((await resendsOf(usher, client)).size).toBe(0);

  const { location } = await pages.post('/ops/notifications/resend-all', { ...filter, confirmed: 'yes' });
  const progress = await pages.finished(location);
  expect([tile(progress, 'Selected'), tile(progress, 'Sent again'), tile(progress, 'Left out')]).toEqual([
    '70',
    '70',
    '0',
  ]);
  expect(progress).toContain('The certificate of the receiver has expired.');
  expect(await resendsOf(usher, client)).toEqual(new Map(wanted.map((id) => [id, 1])));
  expect((await resendsOf(usher, other)).size).toBe(0);

  const audit = usher.running.app.get(AuditLog, { strict: false });
  const id = location.split('/').at(-1);
  const [started] = await audit.list({ subject: `resend:${id}` });
  const detail = { client: client.id, host: 'broken.example', reason: 'tls-expired', selected: 70 };
  expect(started).toMatchObject({ action: 'resend.started', actor: 'operator:ops', detail });
  const [event] = await audit.list({ subject: `webhook:${wanted[0]}` });
  expect(event).toMatchObject({ action: 'webhook.resent', actor: 'operator:ops', detail: { request: id } });
});

test('an operator stops a running request, and the rest is not sent again', async () => {
  const client = await usher.client(receiver.url);
  const ids = await insertFailed(
    client,
    Array.from({ length: 60 }, (_, n) => `stopped-${n}`),
  );
  // No worker takes it up, so the only batch is the one of this test.
  const runs = usher.running.app.get<Queue>(getQueueToken(RETRY_RUN_QUEUE), { strict: false });
  await runs.pause();
  await eventually('no run is in progress', async () => (await runs.getActiveCount()) === 0);
  const { body: request } = await client.call('POST', '/webhooks/resend', { status: 'FAILED' });
  const page = `/ops/resends/${String(request.id)}`;
  const work = usher.running.app.get(ResendWork, { strict: false });
  expect(await work.batch(String(request.id))).toBe('going-on');
  expect(await pages.get(page)).toContain(`action="${page}/stop"`);

  expect(await pages.post(`${page}/stop`)).toMatchObject({ status: 303, location: page });
  expect(await work.batch(String(request.id))).toBe('finished');
  const stopped = await pages.get(page);
  expect(stopped).toContain('>stopped</span>');
  expect(tile(stopped, 'Sent again')).toBe('50');
  expect(stopped).not.toContain(`${page}/stop`);
  expect((await resendsOf(usher, client)).size).toBe(50);
  const audit = usher.running.app.get(AuditLog, { strict: false });
  const events = await audit.list({ subject: `resend:${String(request.id)}` });
  expect(events.map(({ action, actor }) => [action, actor])).toEqual([
    ['resend.stopped', 'operator:ops'],
    ['resend.started', `client:${client.id}`],
  ]);
  expect(events[0]?.detail).toEqual({ selected: ids.length, resent: 50, refused: 0 });
  expect((await client.call('GET', `/webhook-resends/${String(request.id)}`)).body).toMatchObject({
    state: 'STOPPED',
    resent: 50,
  });

  // It has ended: the page says so again, nothing else is recorded.
  expect((await pages.post(`${page}/stop`)).status).toBe(303);
  expect(await audit.list({ subject: `resend:${String(request.id)}` })).toHaveLength(2);
  const viewer = await OperatorBrowser.of(usher, 'vera', 'viewer');
  expect((await viewer.post(`${page}/stop`, {}, { page: null })).status).toBe(403);
  expect((await pages.post('/ops/resends/s0000000000000000000000/stop')).status).toBe(404);
  await runs.resume();
});

test('a client cannot read the request of an operator', async () => {
  const client = await usher.client(receiver.url);
  const { location } = await pages.post(
    '/ops/notifications/resend',
    selectionOf(await insertFailed(client, ['private'])),
  );
  const id = location.split('/').at(-1);
  expect((await client.call('GET', `/webhook-resends/${id}`)).status).toBe(404);
  await pages.get('/ops/resends/none', 404);
});

test('of a filter by the end, only what has ended since then is sent again', async () => {
  const client = await usher.client(receiver.url);
  await insertFailed(client, ['ended-long-ago'], 48);
  const recent = await insertFailed(client, ['ended-just-now'], 1);
  const filter = { status: 'UNRESOLVED', client: client.id, endedSince: '24h' };
  await pages.counted(`/ops/notifications?${new URLSearchParams(filter)}`, 'filter again: 1 of 1 client');
  const { location } = await pages.post('/ops/notifications/resend-all', { ...filter, confirmed: 'yes' });
  expect(tile(await pages.finished(location), 'Sent again')).toBe('1');
  expect(await resendsOf(usher, client)).toEqual(new Map(recent.map((id) => [id, 1])));
});

test('the page of a pending notification shows the plan of its attempts, and links its receiver and the repair for later orders', async () => {
  const patient = await TestUsher.start({ WEBHOOK_MAX_ATTEMPTS: '3', WEBHOOK_RETRY_EVERY: '1h' });
  const client = await patient.client(receiver.url);
  receiver.behaviour = answer(404);
  const key = await client.completedOrder();
  await patient.attemptEnded(key, 1);
  receiver.behaviour = answer(200);
  const [webhook] = await patient.webhooks.find(key);
  const text = await new ConsolePages(() => patient).get(`/ops/webhooks/${webhook!.id}`);
  await patient.stop();
  expect(text).toContain('Correct the path in the Notify URL, or add the route to the receiver.');
  expect(text).toMatch(
    /<strong>2<\/strong> not before <time[^]*<strong>3<\/strong> not before <time[^]*FAILED not before/,
  );
  expect(text).toContain(`href="/ops/clients/${client.id}#notify-url">Repair the Notify URL for later orders</a>`);
  expect(text).toContain(
    `href="/ops/receivers/${encodeURIComponent(new URL(receiver.url).host)}">See the receiver</a>`,
  );
  expect(text).toContain('A test client</a>');
  expect(text).toContain('&quot;transactionId&quot;:&quot;TX-1&quot;');
});
