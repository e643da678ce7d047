import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { getQueueToken } from '@nestjs/bullmq';
import { getDataSourceToken } from '@nestjs/typeorm';
import type { Queue } from 'bullmq';
import type { DataSource } from 'typeorm';
import { Authorization } from '../../src/clients/authorization.entity.js';
import { ConnectedApplications } from '../../src/auth/authorize/connected-applications.js';
import { AccessToken, Grant } from '../../src/auth/tokens/grant.entity.js';
import { digestToken } from '../../src/auth/tokens/token.js';
import { MemberSession } from '../../src/members/member.entity.js';
import { PortalSession } from '../../src/clients/portal.entity.js';
import { OperatorSession, UsedForm } from '../../src/operators/operator.entity.js';
import { Purge, PURGE_QUEUE } from '../../src/retention/purge.js';
import { newId } from '../../src/values/identifier.js';
import { addOutcomes } from '../../src/webhooks/figures/add-outcomes.js';
import { DeliveryFigure } from '../../src/webhooks/figures/delivery-figure.entity.js';
import { DeliveryPause, heldAt, Webhook } from '../../src/webhooks/webhook.entity.js';
import { eventually } from '../support/eventually.js';
import { usher as run, usherJson } from '../support/process.js';
import { type TestClient, TestUsher } from '../support/usher.js';
import { insertFailed } from '../webhooks/undelivered/support.js';

const EXPIRED = 10_000;
const PAGE = 1_000;
const HOUR_MS = 3_600_000;

let usher: TestUsher;
let dataSource: DataSource;
let client: TestClient;

beforeAll(async () => {
  // No worker, because a worker would also purge at a full hour. No limit, because a purge can take long on a busy machine.
  usher = await TestUsher.start({ USHER_ROLE: 'api', TOKEN_RATE_LIMIT: 'off' });
  dataSource = usher.running.app.get<DataSource>(getDataSourceToken('usher'));
  client = await usher.client();
});
afterAll(() => usher.stop());

const digest = (): string => digestToken(randomBytes(32).toString('hex'));

/** Inserts `count` expired grants and as many expired access tokens. */
async function insertExpired(count: number): Promise<void> {
  const createdAt = Date.now() - 2 * HOUR_MS;
  for (let done = 0; done < count; done += PAGE) {
    const grants = Array.from({ length: Math.min(PAGE, count - done) }, (_, index) => ({
      id: newId('sandbox', createdAt + index),
      clientId: client.id,
      refreshDigest: digest(),
      accessDigest: digest(),
      accessExpiresAt: createdAt,
      generation: 0,
      createdAt,
      expiresAt: createdAt + ((done + index) % 5_000),
    }));
    await dataSource.manager.insert(Grant, grants);
    const tokens = grants.map(({ id, ...grant }) => ({ ...grant, digest: digest(), grantId: id }));
    await dataSource.manager.insert(
      AccessToken,
      tokens.map(({ refreshDigest: _, accessDigest: _first, accessExpiresAt: _until, ...token }) => token),
    );
  }
}

const counts = async (): Promise<{ grants: number; accessTokens: number }> => ({
  grants: await dataSource.manager.count(Grant),
  accessTokens: await dataSource.manager.count(AccessToken),
});

test('20,000 expired rows are deleted while tokens are issued, and no token request fails', async () => {
  await insertExpired(EXPIRED);
  const before = await counts();
  let isPurging = true;
  const purge = usher.running.app
    .get(Purge, { strict: false })
    .run()
    .finally(() => (isPurging = false));
  const statuses: number[] = [];
  const issue = async (): Promise<void> => {
    do statuses.push((await client.token()).status);
    while (isPurging);
  };
  await Promise.all([issue(), issue(), issue()]);
  expect(await purge).toMatchObject({ grants: EXPIRED, accessTokens: EXPIRED });
  expect(statuses.filter((status) => status !== 200)).toEqual([]);
  expect(await counts()).toEqual({
    grants: before.grants - EXPIRED + statuses.length,
    accessTokens: before.accessTokens - EXPIRED,
  });
});

test('two concurrent purges share the work, and the next one deletes the rows that both had locked', async () => {
  await insertExpired(2_000);
  const purge = usher.running.app.get(Purge, { strict: false });
  const [one, other] = await Promise.all([purge.run(), purge.run()]);
  const next = await purge.run();
  const total = (kind: 'grants' | 'accessTokens'): number => one[kind] + other[kind] + next[kind];
  expect([total('grants'), total('accessTokens')]).toEqual([2_000, 2_000]);
});

test('a grant stays after its refresh token expired, and its access tokens are valid', async () => {
  const { body } = await client.token();
  const refreshed = String((await client.refresh(body.refresh_token)).body.access_token);
  const neverRefreshed = String((await client.token()).body.access_token);
  await dataSource.manager.update(Grant, { clientId: client.id }, { expiresAt: 1 });
  expect(await usherJson(usher.settings, ['purge'])).toEqual({
    grants: 0,
    access_tokens: 0,
    authorizations: 0,
    member_sessions: 0,
    operator_sessions: 0,
    used_forms: 0,
    portal_sessions: 0,
    portal_links: 0,
    contact_notices: 0,
    idempotency_keys: 0,
    orders: 0,
    webhooks: 0,
    webhook_rows: 0,
    resends: 0,
    failing_hosts: 0,
    delivery_pauses: 0,
    delivery_figures: 0,
    audit_events: 0,
  });
  for (const token of [String(body.access_token), refreshed, neverRefreshed]) {
    const headers = { authorization: `Bearer ${token}` };
    expect((await usher.request('GET', '/movie-orders/none', headers)).status).toBe(404);
  }
  expect((await client.refresh(body.refresh_token)).body.error).toBe('invalid_grant');
});

test('the access tokens of a resource owner end with the consent, also after the refresh token expired', async () => {
  for (const isRefreshed of [false, true]) {
    const { body } = await client.token();
    const last = isRefreshed ? (await client.refresh(body.refresh_token)).body : body;
    const ended = { ownerId: 'owner', expiresAt: 1, ...(isRefreshed && { accessExpiresAt: 1 }) };
    await dataSource.manager.update(Grant, { refreshDigest: digestToken(String(body.refresh_token)) }, ended);
    await usher.running.app.get(Purge, { strict: false }).run();
    await usher.running.app.get(ConnectedApplications, { strict: false }).withdraw('owner', client.id);
    const headers = { authorization: `Bearer ${String(last.access_token)}` };
    expect((await usher.request('GET', '/movie-orders/none', headers)).status).toBe(401);
  }
});

test('the figures of deliveries are deleted after 31 days', async () => {
  const webhook = { clientId: client.id, notifyUrl: 'https://receiver.example/', createdAt: 1 };
  const now = Date.now();
  const at = (endedAt: number) => ({ webhook, endedAt, attempt: { durationMs: 1, hasFailed: false }, ended: null });
  await dataSource.transaction((manager) => addOutcomes(manager, [at(now), at(now - 30 * 24 * HOUR_MS)]));
  await dataSource.transaction((manager) => addOutcomes(manager, [at(now - 32 * 24 * HOUR_MS)]));
  expect(await dataSource.manager.count(DeliveryFigure)).toBe(6);
  expect(await usher.running.app.get(Purge, { strict: false }).run()).toMatchObject({ deliveryFigures: 2 });
  expect(await dataSource.manager.count(DeliveryFigure)).toBe(4);
});

test('a pause is deleted a day after its end, once it holds no notification any more', async () => {
  const { manager } = dataSource;
  const day = Date.now() - 24 * HOUR_MS;
  const reason = 'Maintenance';
  const holding: DeliveryPause = { subject: 'host:holding.example', since: 2, reason, resumedAt: day - 1_000 };
  await manager.insert(DeliveryPause, [
    { subject: 'host:over.example', since: 1, reason, resumedAt: day - 1_000 },
    holding,
    { subject: 'host:recent.example', since: 3, reason, resumedAt: day + 600_000 },
    { subject: 'host:paused.example', since: 4, reason, resumedAt: null },
  ]);
  const held = { status: 'PENDING', nextAttemptAt: heldAt(holding), finishedAt: null } as const;
  const [id] = await insertFailed(client, ['held'], 1, held);
  const purged = async () => {
    const { deliveryPauses } = await usher.running.app.get(Purge, { strict: false }).run();
    const left = await manager.find(DeliveryPause, { order: { since: 'ASC' } });
    return [deliveryPauses, ...left.map(({ since }) => since)];
  };
  expect(await purged()).toEqual([1, 2, 3, 4]);
  await manager.update(Webhook, { id }, { nextAttemptAt: Date.now() });
  expect(await purged()).toEqual([1, 3, 4]);
});

test('without a terminal the command prints progress lines and the number of deleted rows', async () => {
  await insertExpired(1_000);
  const session = { clientId: client.id, linkId: 'link', mayChange: true, createdAt: 1, expiresAt: 2 };
  await dataSource.manager.insert(PortalSession, { ...session, digest: 'of a portal' });
  const { code, stdout, stderr } = await run(usher.settings, ['purge']);
  expect([code, stdout]).toEqual([
    0,
    'Deleted: 1000 grant(s), 1000 access token(s), 0 authorisation(s), 1 session(s), 0 idempotency key(s), 0 order(s), bodies and attempts of 0 notification(s), 0 row(s) of older notifications, 0 resend request(s), 0 failing host(s), 0 row(s) of delivery figures, 0 audit event(s).\n',
  ]);
  expect(stderr).toBe(['500', '1000', '1500', '2000', '2001'].map((done) => `Purging ${done}/2001\n`).join(''));
});

test('an aborted purge stops between two batches', async () => {
  await insertExpired(1_000);
  const purge = usher.running.app.get(Purge, { strict: false });
  const ending = new AbortController();
  const { accessTokens } = await purge.run({ signal: ending.signal, onProgress: () => ending.abort() });
  expect(accessTokens).toBe(500);
  expect(await purge.run()).toMatchObject({ grants: 1_000, accessTokens: 500 });
});

test('sessions are deleted when they have ended, and codes a day later', async () => {
  const { manager } = dataSource;
  const now = Date.now();
  const session = { memberId: newId('sandbox', now), createdAt: 1 };
  await manager.insert(MemberSession, [
    { ...session, digest: 'ended', expiresAt: now - 1_000 },
    { ...session, digest: 'open', expiresAt: now + 600_000 },
  ]);
  const operators = { operatorId: newId('sandbox', now), settingsMac: null, createdAt: 1 };
  await manager.insert(OperatorSession, [
    { ...operators, digest: 'ended', expiresAt: now - 1_000 },
    { ...operators, digest: 'open', expiresAt: now + 600_000 },
  ]);
  await manager.insert(UsedForm, [
    { digest: 'sent', expiresAt: now - 1 },
    { digest: 'good', expiresAt: now + 600_000 },
  ]);
  const portal = { clientId: client.id, linkId: newId('sandbox', now), mayChange: true, createdAt: 1 };
  await manager.insert(PortalSession, [
    { ...portal, digest: 'ended', expiresAt: now - 1_000 },
    { ...portal, digest: 'open', expiresAt: now + 600_000 },
  ]);
  const asked = { browserDigest: 'x', clientId: 'client', ownerId: 'owner', redirectUri: 'https://x.example/' };
  const row = { ...asked, codeChallenge: 'x', createdAt: 1 };
  await manager.insert(Authorization, [
    { ...row, formDigest: 'yesterday', expiresAt: now - 24 * HOUR_MS - 1_000 },
    { ...row, formDigest: 'today', expiresAt: now - 24 * HOUR_MS + 600_000 },
  ]);
  expect(await usher.running.app.get(Purge, { strict: false }).run()).toMatchObject({
    authorizations: 1,
    memberSessions: 1,
    operatorSessions: 1,
    usedForms: 1,
    portalSessions: 1,
  });
  for (const sessions of [MemberSession, OperatorSession, PortalSession])
    expect((await manager.find(sessions)).map(({ digest }) => digest)).toEqual(['open']);
  expect((await manager.find(Authorization)).map(({ formDigest }) => formDigest)).toEqual(['today']);
});

test('a worker purges when the queue has the job', async () => {
  const working = await TestUsher.start();
  const { manager } = working.dataSource;
  const grant = { id: newId('sandbox', Date.now()), clientId: client.id, refreshDigest: digest(), generation: 0 };
  await manager.insert(Grant, { ...grant, createdAt: 1, expiresAt: 2, accessExpiresAt: 2 });
  const queue = working.running.app.get<Queue>(getQueueToken(PURGE_QUEUE), { strict: false });
  await queue.add('run', { run: 1 }, { jobId: 'run-1' });
  await eventually('the grant is gone', async () => !(await manager.existsBy(Grant, { id: grant.id })));
  await working.stop();
});
