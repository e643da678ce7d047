import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { AuditLog } from '../../src/audit/audit.module.js';
import { Authorization, Consent } from '../../src/clients/authorization.entity.js';
import { AccessToken, Grant } from '../../src/auth/tokens/grant.entity.js';
import { Client, ClientApplication, ClientSecret } from '../../src/clients/client.entity.js';
import { ClientApplications } from '../../src/clients/client-applications.js';
import { IdempotencyKey, MovieOrder, OrderCounter } from '../../src/orders/movie-order.entity.js';
import type { Erasure } from '../../src/retention/erasure.js';
import { newId, orderKey } from '../../src/values/identifier.js';
import { ContactState, FailingHost } from '../../src/webhooks/contact/failing-host.entity.js';
import { DeliveryPauses } from '../../src/webhooks/delivery-pauses.js';
import { DeliveryFigure } from '../../src/webhooks/figures/delivery-figure.entity.js';
import { ResentWebhook, WebhookResend } from '../../src/webhooks/undelivered/webhook-resend.entity.js';
import { DeliveredReference, DeliveryPause, Webhook, WebhookAttempt } from '../../src/webhooks/webhook.entity.js';
import { erasureIn } from '../support/erasure.js';
import { ContactNotice, PortalLink, PortalSession } from '../../src/clients/portal.entity.js';
import { portalOf } from '../server/portal/portal-browser.js';
import { eventually } from '../support/eventually.js';
import { usher as run, UsherProcess } from '../support/process.js';
import { answer, TestReceiver } from '../support/receiver.js';
import { NEW_ORDER, ONE_ATTEMPT, type TestClient, TestUsher } from '../support/usher.js';

const OWNED = [
  Webhook,
  DeliveredReference,
  MovieOrder,
  IdempotencyKey,
  AccessToken,
  Grant,
  ClientSecret,
  OrderCounter,
  WebhookResend,
  ClientApplication,
  Authorization,
  Consent,
];
const OLD = Date.now() - 100 * 86_400_000;

let usher: TestUsher;
let receiver: TestReceiver;
beforeAll(async () => {
  receiver = await TestReceiver.start();
  usher = await TestUsher.start(ONE_ATTEMPT);
});
afterEach(() => {
  receiver.behaviour = answer(200);
});
afterAll(async () => {
  await usher.stop();
  receiver.close();
});

const erasure = (): Erasure => erasureIn(usher.dataSource, (type) => usher.running.app.get(type, { strict: false }));

/** A client that has rows of every kind. */
async function client(): Promise<TestClient> {
  const made = await usher.client(receiver.url);
  const { manager } = usher.dataSource;
  await usher.webhook(await made.completedOrder(), 'SUCCESS');
  receiver.behaviour = answer(500);
  await usher.webhook(await made.completedOrder(), 'FAILED');
  receiver.behaviour = answer(200);
  expect((await made.call('GET', '/movie-orders')).status).toBe(200);
  expect((await made.call('POST', '/webhooks/resend', { status: 'FAILED', referenceId: 'none' })).status).toBe(202);
  const body = JSON.stringify(NEW_ORDER);
  const { refresh_token: refreshToken } = (await made.token()).body;
  const token = String((await made.refresh(refreshToken)).body.access_token);
  await made.refresh(refreshToken);
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'idempotency-key': 'once' };
  expect((await usher.request('POST', '/movie-orders', headers, body)).status).toBe(201);
  const [webhookId = ''] = await webhooksOf(made);
  await manager.insert(ResentWebhook, { resendId: newId('sandbox', OLD), webhookId, refusal: null });
  await manager.insert(DeliveredReference, {
    webhookId: newId('sandbox', OLD),
    referenceId: orderKey(newId('sandbox', OLD)),
    eventType: 'NOTIFY_ORDER_COMPLETION',
    clientId: made.id,
    attempts: 1,
    finishedAt: OLD,
  });
  const redirectUri = 'https://app.example/callback';
  await usher.running.app
    .get(ClientApplications, { strict: false })
    .configure(made.id, { redirectUris: [redirectUri] });
  const owned = { clientId: made.id, ownerId: newId('sandbox', OLD) };
  const digests = { formDigest: newId('sandbox', OLD), browserDigest: 'x', codeChallenge: 'x' };
  await manager.insert(Authorization, { ...owned, ...digests, redirectUri, createdAt: OLD, expiresAt: OLD });
  await manager.insert(Consent, { ...owned, givenAt: OLD });
  return made;
}

const rowsOf = async ({ id: clientId }: TestClient): Promise<number[]> => {
  const { manager } = usher.dataSource;
  const counts = OWNED.map((entity) => manager.countBy<{ clientId: string }>(entity, { clientId }));
  return [await manager.countBy(Client, { id: clientId }), ...(await Promise.all(counts))];
};

/** How many rows belong to each of these webhooks. */
const attempts = (webhookIds: string[]): Promise<number[]> =>
  Promise.all(
    [WebhookAttempt, ResentWebhook].flatMap((entity) =>
      webhookIds.map((webhookId) => usher.dataSource.manager.countBy<{ webhookId: string }>(entity, { webhookId })),
    ),
  );

const webhooksOf = async ({ id }: TestClient): Promise<string[]> =>
  (await usher.dataSource.manager.findBy(Webhook, { clientId: id })).map((webhook) => webhook.id);

const NOTHING = Array(OWNED.length + 1).fill(0);

test('an erasure deletes everything of a disabled client and nothing of another, and returns the counts', async () => {
  const [one, other] = [await client(), await client()];
  const [before, webhooks] = [await rowsOf(other), await webhooksOf(one)];
  const { manager } = usher.dataSource;
  // Sent again once, and purged since then.
  const { id: resendId } = await manager.findOneByOrFail(WebhookResend, { clientId: one.id });
  await manager.insert(ResentWebhook, { resendId, webhookId: newId('sandbox', OLD), refusal: null });
  expect(before).toEqual([1, 2, 1, 3, 1, 2, 2, 1, 1, 1, 1, 1, 1]);
  await usher.clients.setDisabled(one.id, true);
  expect(await erasure().eraseClient(one.id)).toEqual({
    webhooks: 2,
    references: 1,
    orders: 3,
    idempotencyKeys: 1,
    accessTokens: 2,
    grants: 2,
  });
  expect([await rowsOf(one), await attempts(webhooks)]).toEqual([NOTHING, [0, 0, 0, 0]]);
  expect(await Promise.all(webhooks.map((id) => usher.queue.getJob(id)))).toEqual([undefined, undefined]);
  expect(await manager.countBy(ResentWebhook, { resendId })).toBe(0);
  expect(await rowsOf(other)).toEqual(before);
  const audit = await usher.running.app.get(AuditLog, { strict: false }).list({ subject: `client:${one.id}` });
  expect(audit.map(({ action }) => action).slice(0, 2)).toEqual(['client.erased', 'client.erasure-started']);
  expect(audit[0]?.detail).toMatchObject({ orders: 3, webhooks: 2 });
});

test('what is known of failing hosts, deliveries, pauses and the contact is deleted too, and the audit never had the address', async () => {
  const [one, other] = [await client(), await client()];
  const { manager } = usher.dataSource;
  const pauses = usher.running.app.get(DeliveryPauses, { strict: false });
  for (const { id } of [one, other]) await pauses.pause(`client:${id}`, 'Moves its servers');
  await usher.clients.setContact(one.id, 'ops@partner.example');
  await usher.clients.setContact(one.id, 'other@partner.example');
  await portalOf(usher, one.id);
  // A retry run may have made it already.
  const state = { clientId: one.id, sent: 1, notBefore: 0, failures: 0, leasedUntil: 0 };
  await manager.upsert(ContactState, state, ['clientId']);
  expect(await manager.countBy(FailingHost, { clientId: one.id })).toBe(1);
  expect(await manager.countBy(DeliveryFigure, { clientId: one.id })).toBeGreaterThan(0);
  await usher.clients.setDisabled(one.id, true);
  await erasure().eraseClient(one.id);
  for (const entity of [PortalLink, PortalSession, ContactNotice])
    expect(await manager.countBy<{ clientId: string }>(entity, { clientId: one.id })).toBe(0);
  expect(await manager.countBy(FailingHost, { clientId: one.id })).toBe(0);
  expect(await manager.countBy(ContactState, { clientId: one.id })).toBe(0);
  expect(await manager.findBy(DeliveryPause, {})).toMatchObject([{ subject: `client:${other.id}` }]);
  expect(await manager.countBy(DeliveryFigure, { clientId: one.id })).toBe(0);
  await expect(erasure().eraseClient('')).rejects.toThrow('there is no client');
  expect(await manager.countBy(DeliveryFigure, { clientId: '' })).toBeGreaterThan(0);
  const audit = await usher.running.app.get(AuditLog, { strict: false }).list({ subject: `client:${one.id}` });
  expect(audit.map(({ action }) => action)).toContain('client.contact-set');
  expect(JSON.stringify(audit)).not.toContain('partner.example');
});

test('an erasure is refused while the client is enabled, and for an unknown client', async () => {
  const enabled = await client();
  const before = await rowsOf(enabled);
  await expect(erasure().eraseClient(enabled.id)).rejects.toThrow(
    `client ${enabled.id} is enabled; disable it first with "usher client disable ${enabled.id}"`,
  );
  expect(await rowsOf(enabled)).toEqual(before);
  await expect(erasure().eraseClient(`${enabled.id} `)).rejects.toThrow('there is no client');
  await expect(erasure().eraseClient('nobody')).rejects.toThrow('there is no client nobody');
});

test('an erasure is finished by a second call, wherever the first one was interrupted', async () => {
  for (let at = 1; at <= 8; at += 1) {
    const one = await client();
    await usher.clients.setDisabled(one.id, true);
    let calls = 0;
    const interrupt = (): void => {
      calls += 1;
      if (calls === at) throw new Error('interrupted');
    };
    await expect(erasure().eraseClient(one.id, { onProgress: interrupt })).rejects.toThrow('interrupted');
    expect((await rowsOf(one))[0]).toBe(at <= 6 ? 1 : 0);
    await erasure().eraseClient(one.id);
    const [last] = await usher.running.app.get(AuditLog, { strict: false }).list({ subject: `client:${one.id}` });
    expect([await rowsOf(one), last?.action]).toEqual([NOTHING, 'client.erased']);
  }
});

test('a job whose webhook is erased ends, and an attempt that is under way leaves no row', async () => {
  const one = await usher.client(receiver.url);
  let finish: () => void = () => undefined;
  receiver.behaviour = (response) => (finish = () => void response.writeHead(500).end());
  const key = await one.completedOrder();
  await receiver.waitFor(key);
  const [webhookId = ''] = await webhooksOf(one);
  await usher.clients.setDisabled(one.id, true);
  await erasure().eraseClient(one.id);
  finish();
  await eventually('the job has ended', async () => (await usher.queue.getJobState(webhookId)) !== 'active');
  expect([await rowsOf(one), await attempts([webhookId])]).toEqual([NOTHING, [0, 0]]);
  await usher.queue.add('deliver', { webhook: webhookId }, { jobId: `${webhookId}-again` });
  const job = await eventually('it is completed', async () => {
    const found = await usher.queue.getJob(`${webhookId}-again`);
    return found?.finishedOn === undefined ? null : found;
  });
  expect(job.failedReason ?? null).toBeNull();
});

test('a client with more rows than a batch is erased while another one is served', async () => {
  const [one, other] = [await client(), await usher.client(receiver.url)];
  const { manager } = usher.dataSource;
  const common = { clientId: one.id, createdAt: OLD, lastUpdatedAt: OLD, status: 'PENDING' as const };
  const orders = Array.from({ length: 1_300 }, () => ({ ...NEW_ORDER, ...common, id: newId('sandbox', OLD) }));
  await manager.insert(MovieOrder, orders);
  await usher.clients.setDisabled(one.id, true);
  const [erased, ...keys] = await Promise.all([
    erasure().eraseClient(one.id),
    ...Array.from({ length: 5 }, () => other.completedOrder()),
  ]);
  expect(erased.orders).toBe(1_303);
  for (const key of keys) await usher.webhook(key, 'SUCCESS');
  expect(await rowsOf(one)).toEqual(NOTHING);
});

test('the command asks for the id, deletes nothing without it, deletes jobs, and can be repeated', async () => {
  const one = await client();
  await usher.clients.setDisabled(one.id, true);
  const typed = async (line: string) => {
    const command = new UsherProcess('cli.js', ['client', 'erase', one.id, '--json'], usher.settings);
    command.child.stdin?.end(line);
    return command.ended;
  };
  for (const line of ['', 'yes\n']) {
    const { code, stdout, stderr } = await typed(line);
    expect([code, stdout, stderr]).toEqual([1, '', expect.stringContaining('nothing was deleted')]);
  }
  expect((await rowsOf(one))[0]).toBe(1);
  const [id = ''] = await webhooksOf(one);
  expect(await usher.queue.getJob(id)).toBeDefined();
  const { code, stdout } = await typed(`${one.id}\n`);
  expect([code, JSON.parse(stdout)]).toEqual([0, expect.objectContaining({ client_id: one.id, orders: 3 })]);
  expect(await rowsOf(one)).toEqual(NOTHING);
  expect(await usher.queue.getJob(id)).toBeUndefined();
  const again = await run(usher.settings, ['client', 'erase', one.id, '--yes']);
  expect([again.code, again.stdout]).toEqual([0, expect.stringMatching(/^orders +0$/m)]);
});
