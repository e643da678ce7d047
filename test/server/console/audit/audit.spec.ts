import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { AuditEvent } from '../../../../src/audit/audit-event.entity.js';
import { AuditLog } from '../../../../src/audit/audit.module.js';
import { Client } from '../../../../src/clients/client.entity.js';
import { newId } from '../../../../src/values/identifier.js';
import { TestReceiver } from '../../../support/receiver.js';
import { TestUsher } from '../../../support/usher.js';
import { insertFailed } from '../../../webhooks/undelivered/support.js';
import { portalOf } from '../../portal/portal-browser.js';
import { ConsolePages, HOSTILE } from '../console-pages.js';

let usher: TestUsher;
let receiver: TestReceiver;
const pages = new ConsolePages(() => usher);
beforeAll(async () => {
  usher = await TestUsher.shared();
  receiver = await TestReceiver.start();
});
afterAll(() => void receiver.close());

const audit = () => usher.running.app.get(AuditLog, { strict: false });
const find = (filter: Record<string, string>) => pages.get(`/ops/audit?${new URLSearchParams(filter)}`);

/** What the rows of a page tell that somebody did. */
const deeds = (text: string): string[] =>
  [...text.matchAll(/data-name="Did what"[^>]*>\s*<div>([^<]*)</g)].map(([, words = '']) => words);

test('the audit is filtered by actor, action, subject and time, and a kind of actors means all of them', async () => {
  const client = await usher.client();
  const alice = { name: 'operator:alice', address: '192.0.2.1' };
  await usher.clients.rename(client.id, 'Renamed', alice);
  await usher.clients.setDisabled(client.id, true, { name: 'operator:bob', address: null });
  const subject = `client:${client.id}`;
  expect(deeds(await find({ subject }))).toEqual(['disabled a client', 'renamed a client', 'created a client']);
  expect(deeds(await find({ subject: 'Renamed' }))).toHaveLength(3);
  expect(deeds(await find({ subject, actor: 'operator:alice' }))).toEqual(['renamed a client']);
  expect(deeds(await find({ subject, actor: 'operator' }))).toEqual(['disabled a client', 'renamed a client']);
  expect(deeds(await find({ action: 'client.renamed', actor: 'operator:alice' }))).toEqual(['renamed a client']);
  expect(deeds(await find({ subject, since: '1h' }))).toHaveLength(3);
  expect(await find({ subject, until: '1h' })).toContain('No event matches.');
  expect(await find({ actor: 'operato_:alice' })).toContain('No event matches.');
  expect(await find({ subject })).toContain('192.0.2.1');
});

test('the audit finds the client with exactly this name, and asks for an id if several names have the text', async () => {
  const whole = `Rialto ${randomUUID()}`;
  for (const name of [`A ${whole}`, `B ${whole}`, whole]) await usher.clients.create(name, null);
  expect(deeds(await find({ subject: whole }))).toEqual(['created a client']);
  const text = await pages.get(`/ops/audit?subject=${encodeURIComponent(whole.slice(1))}`, 400);
  expect(text).toContain('Several clients have such a name');
});

test('the audit finds the events of an erased client by its id', async () => {
  const { id } = await usher.client();
  await usher.clients.setDisabled(id, true);
  await usher.dataSource.manager.delete(Client, { id });
  expect(deeds(await find({ subject: id }))).toEqual(['disabled a client', 'created a client']);
});

test('the audit links clients by their names, notifications, and the notifications that were sent again', async () => {
  const client = await usher.client(receiver.url);
  await usher.clients.rename(client.id, 'Odeon');
  const [id = ''] = await insertFailed(client, ['audited']);
  const { location } = await pages.post('/ops/notifications/resend', { [`select.${id}`]: 'yes' });
  const text = await find({ subject: `webhook:${id}` });
  const [resent] = await usher.webhooks.find('audited');
  expect(deeds(text)).toEqual(['sent a notification again']);
  for (const link of [`/ops/clients/${client.id}`, `/ops/webhooks/${resent!.id}`, `/ops/webhooks/${id}`, location])
    expect(text).toContain(`href="${link}"`);
  expect(text).toContain('>Odeon</a>');
  expect(deeds(await find({ action: 'resend.started' }))).toEqual(['asked to send many notifications again']);
});

test('each page of the audit continues exactly where the last one ended', async () => {
  const at = Date.now() - 5_000;
  const events = Array.from({ length: 120 }, (_, n) => ({
    id: newId('sandbox', at + n),
    createdAt: at + n,
    actor: 'command-line:many',
    address: null,
    action: 'queue.paused' as const,
    subject: `queue:${n}`,
    detail: {},
  }));
  await usher.dataSource.manager.insert(AuditEvent, events);
  const seen: string[] = [];
  for (let path = '/ops/audit?actor=command-line:many', page = 1; page <= 3; page += 1) {
    const text = await pages.get(path);
    seen.push(...[...text.matchAll(/href="\/ops\/queues\/queue\/(\d+)"/g)].map(([, n = '']) => n));
    path = /rel="next" href="([^"]+)"/.exec(text)?.[1]?.replaceAll('&amp;', '&') ?? '';
    expect(path === '').toBe(page === 3);
  }
  expect(seen).toEqual(events.map((_, n) => String(119 - n)));
});

test('the audit names a fault at its field, keeps the values, and shows everything as text', async () => {
  const filter = { actor: HOSTILE, action: 'client.hacked', subject: HOSTILE, since: 'soon', until: 'later' };
  const text = await pages.get(`/ops/audit?${new URLSearchParams(filter)}`, 400);
  expect(text.match(/field-fault">/g)).toHaveLength(3);
  expect(text.match(/value="&lt;script&gt;/g)).toHaveLength(2);
  expect(text).toContain('value="soon"');
  await pages.get('/ops/audit?actor=%00&subject=%00', 400);
  await audit().record({
    action: 'queue.changed',
    subject: `queue:${HOSTILE}`,
    actor: { name: `client:${HOSTILE}`, address: HOSTILE },
    detail: { [HOSTILE]: HOSTILE, client: HOSTILE, resentAs: HOSTILE, request: HOSTILE },
  });
  expect((await find({ subject: `queue:${HOSTILE}` })).match(/&lt;script&gt;/g)!.length).toBeGreaterThan(6);
});

test('a list that somebody saved with a NUL in its address does not break the audit, nor the record of the portal', async () => {
  const { id } = await usher.client();
  const browser = await portalOf(usher, id);
  expect((await browser.get('/portal/missed.csv?client=a%00b')).status).toBe(200);
  expect((await browser.get('/portal/record')).text).toContain('saved a list as a file');
  expect(deeds(await find({ actor: `client:${id}` }))[0]).toBe('saved a list as a file');
});
