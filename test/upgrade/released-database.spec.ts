import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type DataSource, LessThan } from 'typeorm';
import { verifyNotification } from 'usher-receiver';
import { AuditLog } from '../../src/audit/audit.module.js';
import { Client, ClientSecret } from '../../src/clients/client.entity.js';
import { usherMigrations } from '../../src/database/migrator.js';
import { MovieOrder } from '../../src/orders/movie-order.entity.js';
import { Purge } from '../../src/retention/purge.js';
import { DeliveredReference, Webhook } from '../../src/webhooks/webhook.entity.js';
import { type Api, basic, COMPLETION, ORDER } from '../fixtures/0.2.0/api.js';
import type { Facts } from '../fixtures/0.2.0/facts.js';
import { erasureIn } from '../support/erasure.js';
import { eventually } from '../support/eventually.js';
import type { TestReceiver } from '../support/receiver.js';
import { UpgradedServer } from '../support/upgraded-server.js';

const MIN_INTERVAL_MS = 500;
let usher: UpgradedServer;
let facts: Facts;
let api: Api;
let receiver: TestReceiver;
let dataSource: DataSource;

beforeAll(async () => {
  usher = await UpgradedServer.start();
  ({ facts, api, receiver, dataSource } = usher);
});
afterAll(() => usher.stop());

describe('a database of 0.2.0', () => {
  test('has rows of every table, so that each is migrated and used', () => {
    const { usher_migration: _, ...counts } = facts.counts;
    expect(Object.keys(counts)).toHaveLength(23);
    expect(Object.entries(counts).filter(([, count]) => count === 0)).toEqual([]);
  });

  test('is migrated by the migrations that were added since, to exactly the schema of the entities', async () => {
    const [initial, ...added] = usherMigrations.map(({ name }) => name);
    expect(initial).toBe('Initial1767225600000');
    expect(usher.migrated.migrations).toEqual(added);
    const { upQueries } = await dataSource.driver.createSchemaBuilder().log();
    expect(upQueries.map(({ query }) => query)).toEqual([]);
  });
});

describe('what 0.2.0 had issued', () => {
  test('the secrets of every client, and both of an open rotation', async () => {
    const { erased, ...enabled } = facts.clients;
    for (const { id, secret, next } of Object.values(enabled))
      for (const each of [secret, ...(next ? [next] : [])])
        expect(await usher.secretStatus({ id, secret: each })).toBe(200);
    expect(await usher.secretStatus(erased)).toBe(401);
    expect(await usher.secretStatus({ ...facts.clients.shop, secret: facts.clients.rotating.secret })).toBe(401);
    const token = await api.token({ ...facts.clients.rotating, secret: facts.clients.rotating.next! });
    expect(await usher.tokenStatus(token.access_token!)).toBe(200);
  });

  test('a rotation that its client asks for again is answered with the same secret, and can be finished', async () => {
    const { selfService } = facts.clients;
    const headers = { authorization: basic(selfService), 'idempotency-key': facts.rotationKey };
    expect((await api.request('POST', '/client/secret/rotate', headers)).secret).toBe(selfService.next);
    const renewed = { ...selfService, secret: selfService.next! };
    await api.request('POST', '/client/secret/finish', { authorization: basic(renewed) });
    expect(await usher.secretStatus(renewed)).toBe(200);
    expect(await usher.secretStatus(selfService)).toBe(401);
  });

  test('access tokens, first ones and refreshed ones, and not one that was revoked', async () => {
    const { access, refreshedAccess, ofMember, revoked } = facts.tokens;
    for (const token of [access, refreshedAccess, ofMember]) expect(await usher.tokenStatus(token)).toBe(200);
    expect(await usher.tokenStatus(revoked)).toBe(401);
  });

  test('refresh tokens, of a client and of a member', async () => {
    const { shop, application } = facts.clients;
    for (const [client, refresh_token] of [
      [shop, facts.tokens.refresh],
      [application, facts.tokens.refreshOfMember],
    ] as const) {
      const token = await api.token(client, { grant_type: 'refresh_token', refresh_token });
      expect(await usher.tokenStatus(token.access_token!)).toBe(200);
    }
  });

  test('the sessions of a member and of operators, who can also sign in again', async () => {
    const connections = await usher.browserOf(facts.member).get('/auth/connections');
    expect([connections.status, connections.text]).toEqual([200, expect.stringContaining('The client application')]);
    for (const person of [facts.operator, facts.settingsOperator]) {
      const page = await usher.browserOf(person).get('/ops/clients');
      expect([page.status, page.text]).toEqual([200, expect.stringContaining('The client shop')]);
      expect((await usher.signInAtConsole(person)).status).toBe(303);
    }
    expect((await usher.signInAsMember(facts.member)).status).toBe(303);
  });
});

describe('orders of 0.2.0', () => {
  test('an Idempotency-Key is answered with the order that it made, and refused for another one', async () => {
    const { shop } = facts.clients;
    const { key, body, order } = facts.idempotent;
    const create = (of: object) => api.call(shop, 'POST', '/movie-orders', of, { 'idempotency-key': key });
    expect((await create(body)).key).toBe(order);
    await expect(create({ ...body, totalAmount: 1 })).rejects.toThrow('answered 4');
  });

  test('a cursor continues where it was, without a repetition', async () => {
    const { shop } = facts.clients;
    type Page = { data: { key: string }[]; resumeCursor: string; hasMore: boolean };
    const page = async (query: string) =>
      (await api.call(shop, 'GET', `/movie-orders?limit=100${query}`)) as unknown as Page;
    const first = await page('');
    expect(first.resumeCursor).toBe(facts.cursor.value);
    const keys = first.data.map(({ key }) => key);
    for (let next = { ...first, hasMore: true }; next.hasMore; keys.push(...next.data.map(({ key }) => key)))
      next = await page(`&cursor=${next.resumeCursor}`);
    expect(new Set(keys).size).toBe(keys.length);
    expect(keys.length).toBeGreaterThanOrEqual(100 + facts.cursor.rest);
    expect(keys).toEqual(expect.arrayContaining([...facts.cases.delivered, ...facts.cases.open]));
    const [open = ''] = facts.cases.open;
    const order = await api.call(shop, 'GET', `/movie-orders/${open}`);
    expect(order).toMatchObject({ key: open, status: 'PENDING', ...ORDER });
  });
});

describe('notifications that 0.2.0 had not finished', () => {
  const expectNoEarlierThanDue = (key: string): void =>
    expect(receiver.of(key)[0]!.at).toBeGreaterThanOrEqual(usher.released.pending.get(key)!.dueAt);

  test('without an attempt are delivered', async () => {
    for (const key of facts.cases.overdue) expect(await usher.webhook(key, 'SUCCESS')).toMatchObject({ attempts: 1 });
  });

  test('with failed attempts continue when they are due, from the count they had, up to five', async () => {
    for (const { key, attempts, hopeless } of facts.cases.interrupted) {
      expect(usher.released.pending.get(key)).toMatchObject({ attempts });
      const webhook = await usher.webhook(key, hopeless ? 'FAILED' : 'SUCCESS');
      const last = hopeless ? 5 : attempts + 1;
      const log = await usher.attemptsOf(webhook);
      expect(log.map(({ number }) => number)).toEqual(Array.from({ length: last }, (_, at) => at + 1));
      const arrived = receiver.of(key).map(({ headers }) => Number(headers['x-webhook-attempt']));
      expect(arrived).toEqual(log.map(({ number }) => number).slice(attempts));
      expectNoEarlierThanDue(key);
      for (const [at, { startedAt }] of log.entries())
        if (at > 0) expect(startedAt - log[at - 1]!.startedAt).toBeGreaterThanOrEqual(MIN_INTERVAL_MS);
    }
  });

  test('whose worker was killed continue when their lease ends, and the attempt counts as made', async () => {
    for (const key of facts.cases.cutOff) {
      const webhook = await usher.webhook(key, 'SUCCESS');
      const [first, second] = await usher.attemptsOf(webhook);
      expect([webhook.attempts, first!.durationMs, second!.responseStatus]).toEqual([2, null, 200]);
      expectNoEarlierThanDue(key);
    }
  });

  test('a running resend of many is finished', async () => {
    const { resending } = facts.clients;
    const path = `/webhook-resends/${facts.resend}`;
    await eventually('it is finished', async () => (await api.call(resending, 'GET', path)).state === 'FINISHED');
    expect(await api.call(resending, 'GET', path)).toMatchObject({ selected: 40, resent: 40, refused: 0 });
    await eventually('all are delivered', async () => {
      const where = { clientId: resending.id, status: 'SUCCESS' as const };
      return (await dataSource.manager.countBy(Webhook, where)) === 40;
    });
  });

  test('an order that the sandbox’s operator was to complete later is completed, and notified', async () => {
    const { completedSoon } = facts.cases;
    await usher.webhook(completedSoon, 'SUCCESS');
    const order = await api.call(facts.clients.shop, 'GET', `/movie-orders/${completedSoon}`);
    expect(order).toMatchObject({ status: 'COMPLETED', ...COMPLETION });
  });

  test('that are due much later wait until then', async () => {
    for (const key of facts.cases.late) {
      const { attempts, nextAttemptAt } = await usher.webhook(key, 'PENDING');
      expect({ attempts, dueAt: nextAttemptAt }).toEqual(usher.released.pending.get(key));
      expect(receiver.of(key)).toEqual([]);
    }
  });
});

describe('notifications that had ended in 0.2.0', () => {
  test('are not sent again after a delivery, also if only the reference remains', async () => {
    const { delivered, oldReferences } = facts.cases;
    for (const key of delivered) await api.complete(facts.clients.shop, key);
    for (const key of [...delivered, ...oldReferences.slice(0, 20), ...oldReferences.slice(-20)])
      expect(await usher.notify(key)).toBe(false);
  });

  test('are in the list of what was not delivered if they failed, and can be resent', async () => {
    const { shop } = facts.clients;
    const answer = await usher.get('/webhooks/undelivered?limit=100', `Bearer ${facts.tokens.access}`);
    const { data } = (await answer.json()) as { data: object[] };
    const keys = data.map((one) => keyOf(JSON.stringify(one)));
    expect(keys).toEqual(expect.arrayContaining([...facts.cases.failed, ...facts.cases.late]));
    const { id } = await usher.webhook(facts.cases.failed[0]!, 'FAILED');
    await api.call(shop, 'POST', `/webhooks/${id}/resend`);
    expect(await usher.webhook(facts.cases.failed[0]!, 'SUCCESS')).toMatchObject({ resendOf: id });
  });

  const keyOf = (line: string): string =>
    (JSON.parse((JSON.parse(line) as { body: string }).body) as { data: { key: string } }).data.key;
});

describe('the audit, the purge and an erasure', () => {
  test('the events of 0.2.0 are listed', async () => {
    const created = await usher.service(AuditLog).list({ action: 'client.created' });
    const subjects = new Set(created.map(({ subject }) => subject));
    for (const { id } of Object.values(facts.clients)) expect(subjects).toContain(`client:${id}`);
  });

  test('what has become too old is purged, and its references are not notified again', async () => {
    // The run of a full hour may have been first, so the rows are counted too.
    expect(await usher.service(Purge).run()).toMatchObject({ grants: 0, accessTokens: 0 });
    const { manager } = dataSource;
    expect(await manager.count(DeliveredReference)).toBe(facts.cases.oldReferences.length + 100);
    expect(await manager.countBy(MovieOrder, { createdAt: LessThan(facts.madeAt - 90 * 86_400_000) })).toBe(0);
    for (const { referenceId } of await manager.find(DeliveredReference, { take: 20 }))
      expect(await usher.notify(referenceId)).toBe(false);
  });

  test('a disabled client is erased with everything', async () => {
    const { id } = facts.clients.erased;
    await erasureIn(dataSource, (type) => usher.service(type)).eraseClient(id);
    for (const entity of [Webhook, MovieOrder, ClientSecret])
      expect(await dataSource.manager.countBy(entity, { clientId: id })).toBe(0);
    expect(await dataSource.manager.countBy(Client, { id })).toBe(0);
  });
});

test('all notifications are signed with the secret of their client, and each is delivered once', async () => {
  const { shop, resending } = facts.clients;
  const { delivered, oldReferences, failed, late } = facts.cases;
  const secretOf = new Map([shop, resending].map(({ id, secret }) => [id, secret]));
  for (const { rawBody, headers } of receiver.arrivals) {
    const webhook = await dataSource.manager.findOneByOrFail(Webhook, { id: String(headers['x-webhook-id']) });
    const notification = verifyNotification({ rawBody, headers, secret: secretOf.get(webhook.clientId)! });
    expect(notification.data.key).toBe(webhook.referenceId);
  }
  const ended = [...delivered, ...oldReferences, ...failed.slice(1), ...late];
  const arrived = receiver.arrivals.map(({ key }) => key);
  expect(ended.filter((key) => arrived.includes(key))).toEqual([]);
  const hopeless = facts.cases.interrupted.filter((one) => one.hopeless).map(({ key }) => key);
  const once = arrived.filter((key) => !hopeless.includes(key));
  expect(once).toHaveLength(new Set(once).size);
});
