import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { USHER_OPTIONS } from '../../../src/usher.options.js';
import type { Claim, FinishedAttempt } from '../../../src/webhooks/deliver/claim.js';
import { ClaimStore } from '../../../src/webhooks/deliver/claim.store.js';
import { DeliveryEvents } from '../../../src/webhooks/deliver/delivery-events.js';
import { OutcomeStore } from '../../../src/webhooks/deliver/outcome.store.js';
import type { Outcome } from '../../../src/webhooks/transport/outcome.js';
import { Webhook, WebhookAttempt } from '../../../src/webhooks/webhook.entity.js';
import { type TestClient, TestUsher } from '../../support/usher.js';

let usher: TestUsher;
let client: TestClient;
let claims: ClaimStore;
let outcomes: OutcomeStore;

beforeAll(async () => {
  usher = await TestUsher.start({ USHER_ROLE: 'api' });
  client = await usher.client('http://127.0.0.1:4000/notify');
  const { app } = usher.running;
  const options = app.get(USHER_OPTIONS, { strict: false });
  claims = new ClaimStore(usher.dataSource, options, app.get(DeliveryEvents, { strict: false }));
  outcomes = new OutcomeStore(usher.dataSource, options);
});
afterAll(async () => {
  await usher.stop();
});

const FACTS = { phase: 'body', address: '127.0.0.1', durationMs: 5, snippet: '' } as const;
const REFUSED: Outcome = { kind: 'refused', status: 500, retryAfterMs: 0, ...FACTS };
const DELIVERED: Outcome = { kind: 'delivered', status: 200, ...FACTS };

async function claimOf(id: string): Promise<Claim> {
  const [result] = await claims.claim([id]);
  if (result?.kind !== 'claimed') throw new Error(`the claim was ${result?.kind}`);
  return result.claim;
}

/** The claims of two attempts of a new webhook. The lease of the first one ended while it still ran. */
async function overtaken(): Promise<{ first: Claim; second: Claim; read: () => Promise<Webhook> }> {
  const [webhook] = await usher.webhooks.find(await client.completedOrder());
  const { id } = webhook!;
  const first = await claimOf(id);
  await usher.dataSource.getRepository(Webhook).update({ id }, { nextAttemptAt: first.at.databaseMs });
  const second = await claimOf(id);
  return { first, second, read: () => usher.dataSource.getRepository(Webhook).findOneByOrFail({ id }) };
}

test('a failure of an earlier attempt does not end the lease of the last one', async () => {
  const { first, second, read } = await overtaken();
  const before = await read();
  const [state] = await outcomes.record([{ claim: first, outcome: REFUSED, endedAt: second.at.databaseMs }]);
  expect(await read()).toEqual(before);
  expect(state).toEqual({ status: 'PENDING', nextAttemptAt: before.nextAttemptAt, endedWebhook: false });
});

test('the release of an earlier attempt does not undo the last one', async () => {
  const { first, read } = await overtaken();
  const before = await read();
  await claims.release(first);
  expect(await read()).toEqual(before);
  expect(await usher.dataSource.manager.countBy(WebhookAttempt, { webhookId: before.id })).toBe(2);
});

test('a success of an earlier attempt ends the webhook, and a failure of the last one then changes nothing', async () => {
  const { first, second, read } = await overtaken();
  const endedAt = second.at.databaseMs;
  await outcomes.record([{ claim: first, outcome: DELIVERED, endedAt }]);
  const ended = await read();
  expect(ended).toMatchObject({ status: 'SUCCESS', nextAttemptAt: null, finishedAt: endedAt });
  await outcomes.record([{ claim: second, outcome: REFUSED, endedAt: endedAt + 1 }]);
  expect(await read()).toEqual(ended);
});

test('a success of an earlier attempt changes nothing after its webhook is FAILED', async () => {
  const { first, second, read } = await overtaken();
  const endedAt = second.at.databaseMs;
  const failed = { status: 'FAILED', liveKey: null, nextAttemptAt: null, finishedAt: endedAt - 1_000 } as const;
  await usher.dataSource.getRepository(Webhook).update({ id: first.webhook.id }, failed);
  const ended = await read();
  const [state] = await outcomes.record([{ claim: first, outcome: DELIVERED, endedAt }]);
  expect(await read()).toEqual(ended);
  expect(state).toMatchObject({ status: 'FAILED', endedWebhook: false });
});

test('a failed attempt counts even if a failover of the database has forgotten its claim', async () => {
  const [webhook] = await usher.webhooks.find(await client.completedOrder());
  const { id } = webhook!;
  const rows = usher.dataSource.getRepository(Webhook);
  const before = await rows.findOneByOrFail({ id });
  const claim = await claimOf(id);
  await rows.update({ id }, { attempts: before.attempts, nextAttemptAt: before.nextAttemptAt });
  await usher.dataSource.manager.delete(WebhookAttempt, { webhookId: id });
  const endedAt = claim.at.databaseMs + 1;
  const [state] = await outcomes.record([{ claim, outcome: REFUSED, endedAt }]);
  await rows.update({ id }, { nextAttemptAt: endedAt });
  expect(await claimOf(id)).toMatchObject({ attempt: 2 });
  expect(state?.nextAttemptAt).toBeGreaterThan(endedAt);
});

test('webhooks that are recorded together end at their own times, and a repetition reports each end', async () => {
  const finished: FinishedAttempt[] = [];
  for (const after of [0, 40_000, 60_000]) {
    const [webhook] = await usher.webhooks.find(await client.completedOrder());
    const claim = await claimOf(webhook!.id);
    finished.push({ claim, outcome: DELIVERED, endedAt: claim.at.databaseMs + after });
  }
  await outcomes.record(finished);
  for (const one of finished) {
    const { id } = one.claim.webhook;
    expect(await usher.dataSource.manager.findOneByOrFail(Webhook, { id })).toMatchObject({ finishedAt: one.endedAt });
    expect(await outcomes.record([one])).toMatchObject([{ status: 'SUCCESS', endedWebhook: true }]);
  }
});

test('webhooks that fail within one second all end at the last of their times, so that no resend comes too early', async () => {
  const finished: FinishedAttempt[] = [];
  const second = Math.ceil(Date.now() / 1_000) * 1_000;
  for (const after of [0, 999]) {
    const [webhook] = await usher.webhooks.find(await client.completedOrder());
    await usher.dataSource.getRepository(Webhook).update({ id: webhook!.id }, { attempts: 4 });
    finished.push({ claim: await claimOf(webhook!.id), outcome: REFUSED, endedAt: second + after });
  }
  await outcomes.record(finished);
  for (const { claim } of finished)
    expect(await usher.webhooks.show(claim.webhook.id)).toMatchObject({
      webhook: { status: 'FAILED', finishedAt: new Date(second + 999).toISOString() },
    });
});
