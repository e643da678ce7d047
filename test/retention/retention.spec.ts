import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type EntityManager, IsNull, Not } from 'typeorm';
import { AuditEvent } from '../../src/audit/audit-event.entity.js';
import { IdempotencyKey, MovieOrder } from '../../src/orders/movie-order.entity.js';
import { EXPIRING_ROWS } from '../../src/retention/expired-rows.js';
import { Purge, type Purged, PurgeSchedule } from '../../src/retention/purge.js';
import { newId, orderIdOf } from '../../src/values/identifier.js';
import { ContactNotice, PortalLink } from '../../src/clients/portal.entity.js';
import { FailingHost } from '../../src/webhooks/contact/failing-host.entity.js';
import { Webhook, WebhookAttempt } from '../../src/webhooks/webhook.entity.js';
import { ResentWebhook, WebhookResend } from '../../src/webhooks/undelivered/webhook-resend.entity.js';
import { WebhookResends } from '../../src/webhooks/undelivered/webhook-resends.js';
import { usherJson } from '../support/process.js';
import { answer, TestReceiver } from '../support/receiver.js';
import { basic, COMPLETION, NEW_ORDER, ONE_ATTEMPT, type TestClient, TestUsher } from '../support/usher.js';

const DAY_MS = 86_400_000;
const OLD = Date.now() - 31 * DAY_MS;
const NOTHING = Object.fromEntries(Object.keys(EXPIRING_ROWS).map((kind) => [kind, 0])) as Purged;

let usher: TestUsher;
let client: TestClient;
let receiver: TestReceiver;
let manager: EntityManager;

beforeAll(async () => {
  receiver = await TestReceiver.start();
  usher = await TestUsher.start({ WEBHOOK_RETENTION: '30d', ...ONE_ATTEMPT });
  client = await usher.client(receiver.url);
  manager = usher.dataSource.manager;
  // A worker would also purge at every full hour.
  await usher.running.app.get(PurgeSchedule, { strict: false }).beforeApplicationShutdown();
});
afterAll(async () => {
  await usher.stop();
  receiver.close();
});

const purge = (): Promise<Purged> => usher.running.app.get(Purge, { strict: false }).run();

/** Sets all times of an order and its webhook to `moment`. */
async function age(key: string, moment = OLD): Promise<void> {
  await manager.update(Webhook, { referenceId: key }, { finishedAt: moment, createdAt: moment });
  await manager.update(MovieOrder, { id: orderIdOf(key)! }, { lastUpdatedAt: moment, createdAt: moment });
}

async function ended(status: 'SUCCESS' | 'FAILED'): Promise<{ key: string; id: string }> {
  receiver.behaviour = answer(status === 'SUCCESS' ? 200 : 500);
  const key = await client.completedOrder();
  const { id } = await usher.webhook(key, status);
  receiver.behaviour = answer(200);
  return { key, id };
}

test('the purge deletes the order, body and attempts of an old SUCCESS, and its reference is not notified again', async () => {
  const { key, id } = await ended('SUCCESS');
  await age(key);
  expect(await purge()).toEqual({ ...NOTHING, orders: 1, webhooks: 1 });
  expect((await client.call('GET', `/movie-orders/${key}`)).status).toBe(404);
  expect(await manager.findOneByOrFail(Webhook, { id })).toMatchObject({ body: '', notifyUrl: '', status: 'SUCCESS' });
  expect(await manager.countBy(WebhookAttempt, { webhookId: id })).toBe(0);

  const { webhook: again } = await usher.webhooks.notify({ referenceId: key, clientId: client.id, data: { key } });
  expect([again.id, again.status, receiver.of(key).length]).toEqual([id, 'SUCCESS', 1]);
  expect(await purge()).toEqual(NOTHING);
});

/** Runs the purge as if half an hour had passed since the last one: it deletes the rows that were emptied then. */
async function purgeLater(): Promise<Purged> {
  await manager.update(Webhook, { purgedAt: Not(IsNull()) }, { purgedAt: Date.now() - 1_900_000 });
  return purge();
}

test('a narrow row of a delivered webhook remains at last, and every view shows what is known', async () => {
  const { key, id } = await ended('SUCCESS');
  const { webhook: before } = await usher.webhooks.show(id);
  await age(key);
  await purge();
  expect(await purgeLater()).toMatchObject({ webhooks: 0, webhookRows: expect.any(Number) });
  expect(await manager.existsBy(Webhook, { id })).toBe(false);

  const { createdAt } = before;
  const known = { id, referenceId: key, status: 'SUCCESS', attemptCount: 1, notifyUrl: null, createdAt };
  const finishedAt = new Date(OLD).toISOString();
  expect(await usher.webhooks.show(id)).toMatchObject({ webhook: { ...known, finishedAt }, attempts: [] });
  expect(await usher.webhooks.find(key)).toMatchObject([known]);
  expect(await usher.webhooks.list({ referenceId: key, status: 'FAILED' })).toEqual([]);
  expect((await client.call('GET', `/webhooks/${id}`)).body).toMatchObject({ ...known, attempts: [] });
  const reference = encodeURIComponent(key);
  expect((await client.call('GET', `/webhooks?referenceId=${reference}`)).body).toMatchObject({ data: [known] });
  const other = await usher.client();
  expect((await other.call('GET', `/webhooks/${id}`)).status).toBe(404);
  expect((await other.call('GET', `/webhooks?referenceId=${reference}`)).body.data).toEqual([]);
  expect((await client.call('POST', `/webhooks/${id}/resend`)).status).toBe(409);
  for (const found of [id, key]) {
    const headers = { authorization: basic('ops', 'ops') };
    const page = await usher.request('GET', `/ops?q=${encodeURIComponent(found)}`, headers);
    expect(page.body.text).toContain(`<h1>Notification ${id}</h1>`);
    expect((await usher.request('GET', `/ops/webhooks/${id}`, headers)).body.text).toContain('SUCCESS');
  }
});

test('a delivered reference is never notified again, whenever the purge runs meanwhile', async () => {
  const { key, id } = await ended('SUCCESS');
  await age(key);
  const notify = () => usher.webhooks.notify({ referenceId: key, clientId: client.id, data: { key } });
  const steps: (() => Promise<unknown>)[] = [purge, purgeLater, purge, purgeLater];
  for (const step of steps) {
    const results = await Promise.all([notify(), step(), notify(), notify()]);
    expect([0, 2, 3].map((at) => results[at])).toMatchObject(Array(3).fill({ isNew: false, webhook: { id } }));
  }
  expect(await manager.existsBy(Webhook, { referenceId: key })).toBe(false);
  expect(receiver.of(key)).toHaveLength(1);
});

test('nothing remains of an old FAILED webhook, and its reference can be notified again', async () => {
  const { key, id } = await ended('FAILED');
  await age(key);
  await purge();
  await purgeLater();
  expect((await client.call('GET', `/webhooks/${id}`)).status).toBe(404);
  expect(await usher.webhooks.find(key)).toEqual([]);
  const { isNew } = await usher.webhooks.notify({ referenceId: key, clientId: client.id, data: { key } });
  expect(isNew).toBe(true);
  await usher.webhook(key, 'SUCCESS');
});

test('a host whose last failure is too old is deleted, and one that still fails is kept', async () => {
  const row = { clientId: client.id, failingSince: OLD, lastError: 'connection refused' };
  await manager.insert(FailingHost, { ...row, host: 'old.example', lastFailedAt: OLD });
  await manager.insert(FailingHost, { ...row, host: 'new.example', lastFailedAt: Date.now() });
  expect((await purge()).failingHosts).toBe(1);
  expect(await manager.findBy(FailingHost, { failingSince: OLD })).toMatchObject([{ host: 'new.example' }]);
});

test('an old FAILED webhook is refused with the reason, and a newer one is sent again', async () => {
  const [old, young] = [await ended('FAILED'), await ended('FAILED')];
  await age(old.key);
  await age(young.key, OLD + 2 * DAY_MS);
  expect(await usherJson(usher.settings, ['purge'])).toMatchObject({ orders: 1, webhooks: 1 });

  const refused = await client.call('POST', `/webhooks/${old.id}/resend`);
  expect([refused.status, refused.body.detail]).toEqual([409, expect.stringContaining('its body was deleted')]);
  expect((await client.call('POST', `/webhooks/${young.id}/resend`)).status).toBe(201);
  await receiver.waitFor(young.key, 2);
});

test('PENDING orders and webhooks are kept at any age', async () => {
  const key = await client.order();
  await age(key);
  const { webhook } = await usher.webhooks.notify({ referenceId: 'Waiting-1', clientId: client.id, data: {} });
  const { id } = webhook;
  await usher.webhook('Waiting-1', 'SUCCESS');
  const pending = { status: 'PENDING', finishedAt: null, createdAt: OLD, nextAttemptAt: Date.now() + DAY_MS } as const;
  await manager.update(Webhook, { id }, pending);
  expect(await purge()).toEqual(NOTHING);
  expect((await client.call('GET', `/movie-orders/${key}`)).body.status).toBe('PENDING');
  expect((await manager.findOneByOrFail(Webhook, { id })).body).not.toBe('');
});

test('an Idempotency-Key is deleted after one day', async () => {
  const key = { clientId: client.id, ownerId: '', requestDigest: 'x'.repeat(43), orderId: newId('sandbox', OLD) };
  const now = Date.now();
  await manager.insert(IdempotencyKey, [
    { ...key, key: 'yesterday', createdAt: now - DAY_MS - 1_000 },
    { ...key, key: 'today', createdAt: now - DAY_MS + 600_000 },
  ]);
  expect(await purge()).toEqual({ ...NOTHING, idempotencyKeys: 1 });
  expect((await manager.find(IdempotencyKey)).map((row) => row.key)).toEqual(['today']);
});

test('a link to the portal is kept for the retention after its end, and a message that could not be sent for one day', async () => {
  const now = Date.now();
  const link = { clientId: client.id, mayChange: true, createdBy: 'host', createdAt: 1 };
  const notice = { clientId: client.id, kind: 'secret', notBefore: now + DAY_MS } as const;
  for (const [id, kept] of Object.entries({ old: 0, new: 2 * DAY_MS })) {
    await manager.insert(PortalLink, { ...link, id, digest: id, expiresAt: OLD + kept });
    await manager.insert(ContactNotice, { ...notice, id, createdAt: now - 2 * DAY_MS + kept });
  }
  expect(await purge()).toEqual({ ...NOTHING, portalLinks: 1, contactNotices: 1 });
  expect((await manager.find(PortalLink)).map(({ id }) => id)).toEqual(['new']);
  expect((await manager.find(ContactNotice)).map(({ id }) => id)).toEqual(['new']);
  await manager.delete(ContactNotice, { id: 'new' });
});

test('an event of the audit is deleted after a year, not with the notifications of its time', async () => {
  const event = { actor: 'host', address: null, action: 'client.renamed', subject: 'client:aged', detail: {} } as const;
  const now = Date.now();
  const [expired, kept] = [now - 365 * DAY_MS - 1_000, now - 364 * DAY_MS];
  for (const createdAt of [expired, kept])
    await manager.insert(AuditEvent, { ...event, id: newId('sandbox', createdAt), createdAt });
  expect(await purge()).toEqual({ ...NOTHING, auditEvents: 1 });
  const left = await manager.findBy(AuditEvent, { subject: event.subject });
  expect(left.map(({ createdAt }) => createdAt)).toEqual([kept]);
});

test('1,200 old rows of each kind are deleted while new orders are completed and delivered without loss', async () => {
  await insertOld(1_200);
  const purging = Promise.all([purge(), purge()]);
  const keys = await Promise.all(Array.from({ length: 30 }, () => client.completedOrder()));
  const [one, other] = await purging;
  // Each leaves out a row that the other has locked at that moment. A later run deletes it.
  const later = await purge();
  const sum = (kind: 'orders' | 'webhooks'): number => one[kind] + other[kind] + later[kind];
  expect([sum('orders'), sum('webhooks')]).toEqual([1_200, 1_200]);
  for (const key of keys) expect((await usher.webhook(key, 'SUCCESS')).log).toHaveLength(1);
  expect(await manager.countBy(WebhookAttempt, { startedAt: OLD })).toBe(0);
});

/** Inserts old completed orders, each with a webhook of two attempts. */
async function insertOld(count: number): Promise<void> {
  const ids = Array.from({ length: count }, () => newId('sandbox', OLD));
  const common = { clientId: client.id, createdAt: OLD };
  await manager.insert(
    MovieOrder,
    ids.map((id) => ({ ...NEW_ORDER, ...COMPLETION, ...common, id, status: 'COMPLETED' as const, lastUpdatedAt: OLD })),
  );
  await manager.insert(
    Webhook,
    ids.map((id) => ({
      ...common,
      id,
      referenceId: id,
      eventType: 'NOTIFY_ORDER_COMPLETION',
      liveKey: id,
      body: '{}',
      notifyUrl: receiver.url,
      usesClientUrl: true,
      status: 'SUCCESS' as const,
      attempts: 2,
      finishedAt: OLD,
    })),
  );
  const attempts = ids.flatMap((webhookId) => [1, 2].map((number) => ({ webhookId, number, startedAt: OLD })));
  await manager.insert(WebhookAttempt, attempts);
}

test('an old request to resend is deleted when it is finished, and kept while it continues', async () => {
  const resends = usher.running.app.get(WebhookResends, { strict: false });
  const { id } = await resends.run({ clientId: client.id, ownerId: null }, { status: 'FAILED', referenceId: 'none' });
  await manager.insert(ResentWebhook, { resendId: id, webhookId: id, refusal: null });
  await manager.update(WebhookResend, { id }, { createdAt: OLD, finishedAt: null });
  expect(await purge()).toEqual(NOTHING);
  await manager.update(WebhookResend, { id }, { finishedAt: OLD });
  expect(await purge()).toEqual({ ...NOTHING, resends: 1 });
  expect(await manager.existsBy(WebhookResend, { id })).toBe(false);
  expect(await manager.existsBy(ResentWebhook, { resendId: id })).toBe(false);
});
