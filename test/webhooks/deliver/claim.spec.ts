import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { getDataSourceToken } from '@nestjs/typeorm';
import { type DataSource, In } from 'typeorm';
import { databaseNow, inTransaction } from '../../../src/database/sql.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../../src/usher.options.js';
import { leaseMs } from '../../../src/values/retry-schedule.js';
import type { Claim, ClaimResult } from '../../../src/webhooks/deliver/claim.js';
import { ClaimStore, failExhausted } from '../../../src/webhooks/deliver/claim.store.js';
import { DatabaseOutage } from '../../../src/webhooks/deliver/database-outage.js';
import { DeliveryEvents } from '../../../src/webhooks/deliver/delivery-events.js';
import { Delivery } from '../../../src/webhooks/deliver/delivery.js';
import { OutcomeStore } from '../../../src/webhooks/deliver/outcome.store.js';
import { SigningSecrets } from '../../../src/webhooks/deliver/signing.js';
import { NotificationSender } from '../../../src/webhooks/transport/notification-sender.js';
import { FailingHost } from '../../../src/webhooks/contact/failing-host.entity.js';
import { Webhook, WebhookAttempt } from '../../../src/webhooks/webhook.entity.js';
import { TestUsher } from '../../support/usher.js';

let usher: TestUsher;

beforeAll(async () => {
  usher = await TestUsher.start({ USHER_ROLE: 'api' });
});
afterAll(async () => {
  await usher.stop();
});

function newStore(Store = ClaimStore): ClaimStore {
  const { app } = usher.running;
  return new Store(
    app.get<DataSource>(getDataSourceToken('usher')),
    app.get(USHER_OPTIONS),
    app.get(DeliveryEvents, { strict: false }),
  );
}

/** The ids of new webhooks. */
async function newWebhooks(count: number): Promise<string[]> {
  const client = await usher.client('http://127.0.0.1:4000/notify');
  const orders = await Promise.all(Array.from({ length: count }, () => client.completedOrder()));
  const found = await Promise.all(orders.map((key) => usher.webhooks.find(key)));
  return found.map(([webhook]) => webhook!.id);
}

test('only one of two concurrent claims of the same webhook succeeds', async () => {
  const [id] = (await newWebhooks(1)) as [string];
  const answers = await newStore().claim([id, id]);
  expect(answers.map(({ kind }) => kind)).toEqual(['claimed', 'deferred']);
});

test('a batch counts and records an attempt of the webhooks that it claims, and changes none of the others', async () => {
  const [due, claimed, ended, other] = (await newWebhooks(4)) as [string, string, string, string];
  const { manager } = usher.dataSource;
  await newStore().claim([claimed]);
  await manager.update(Webhook, { id: ended }, { status: 'SUCCESS', nextAttemptAt: null });
  const others = { where: { id: In([claimed, ended]) }, order: { id: 'ASC' } } as const;
  const before = await manager.find(Webhook, others);
  const { retry } = usher.running.app.get<ResolvedOptions>(USHER_OPTIONS);
  const begunAt = await databaseNow(manager);
  const answers = await newStore().claim([claimed, due, 'unknown', ended, other]);
  expect(answers.map(({ kind }) => kind)).toEqual(['deferred', 'claimed', 'missing', 'ended', 'claimed']);
  expect(await manager.find(Webhook, others)).toEqual(before);
  for (const id of [due, other]) {
    const [attempt, ...more] = await manager.findBy(WebhookAttempt, { webhookId: id });
    const { attempts, nextAttemptAt } = await manager.findOneByOrFail(Webhook, { id });
    expect([attempts, attempt?.number, more]).toEqual([1, 1, []]);
    // The lease ends at a retry run.
    expect(nextAttemptAt! % retry.retryEveryMs).toBe(0);
    expect(nextAttemptAt).toBeGreaterThanOrEqual(begunAt + leaseMs(retry));
    expect(nextAttemptAt).toBeLessThan(attempt!.startedAt + leaseMs(retry) + retry.retryEveryMs);
  }
  expect(await manager.countBy(WebhookAttempt, { webhookId: In([claimed, ended]) })).toBe(1);
});

test('of two workers that end a webhook at the end of its last lease, and not before, one counts its end', async () => {
  const [id] = (await newWebhooks(1)) as [string];
  const { dataSource } = usher;
  const now = await databaseNow(dataSource.manager);
  const leaseEndsAt = (nextAttemptAt: number) =>
    dataSource.manager.update(Webhook, { id }, { attempts: 5, nextAttemptAt });
  const end = () => inTransaction(dataSource, (manager) => failExhausted(manager, [id], 5, now));
  await leaseEndsAt(now + 1);
  expect(await end()).toEqual([]);
  await leaseEndsAt(now);
  const ended = await Promise.all([end(), end()]);
  expect(ended.flat()).toMatchObject([{ id }]);
  expect(await dataSource.manager.findOneByOrFail(Webhook, { id })).toMatchObject({
    status: 'FAILED',
    finishedAt: now,
  });
  const [{ clientId }] = ended.flat() as [Webhook];
  const told = { firstEndedFailedAt: now, messageDueAt: now, lastDiagnosis: 'interrupted' };
  expect(await dataSource.manager.findBy(FailingHost, { clientId })).toMatchObject([told]);
});

async function claimOf(id: string): Promise<Claim> {
  const [answer] = await newStore().claim([id]);
  if (answer?.kind !== 'claimed') throw new Error(`the claim was ${answer?.kind}`);
  return answer.claim;
}

/** The next transaction is committed, but its answer is lost. */
function loseNextAnswer(): void {
  const { subscribers } = usher.dataSource;
  const subscriber = {
    afterTransactionCommit: (): never => {
      subscribers.splice(subscribers.indexOf(subscriber), 1);
      throw Object.assign(new Error('read ETIMEDOUT'), { code: 'ETIMEDOUT' });
    },
  };
  subscribers.push(subscriber);
}

test('a release whose answer was lost does not undo the claim that another worker makes then', async () => {
  const [id] = (await newWebhooks(1)) as [string];
  const { manager } = usher.dataSource;
  const claim = await claimOf(id);
  const others: Claim[] = [];
  const release = async (): Promise<void> => {
    if (others.length > 0) return newStore().release(claim);
    loseNextAnswer();
    await newStore()
      .release(claim)
      .finally(async () => {
        await manager.update(Webhook, { id }, { nextAttemptAt: 1 });
        others.push(await claimOf(id));
      });
  };
  await new DatabaseOutage(usher.dataSource).untilStored(claim, release);
  expect(others).toMatchObject([{ attempt: claim.attempt }]);
  expect(await manager.findOneByOrFail(Webhook, { id })).toMatchObject({ attempts: 1 });
  expect(await manager.countBy(WebhookAttempt, { webhookId: id, number: 1 })).toBe(1);
});

/** A machine that is suspended for ten seconds after each claim. The monotonic clock then stands still. */
class SuspendedStore extends ClaimStore {
  override async claim(ids: string[]): Promise<ClaimResult[]> {
    const answers = await super.claim(ids);
    for (const answer of answers) if (answer.kind === 'claimed') answer.claim.at.wallMs -= 10_000;
    return answers;
  }
}

test('a claim from before the machine was suspended is released, and nothing is sent', async () => {
  const [id] = (await newWebhooks(1)) as [string];
  const get = <T>(type: new (...injected: never[]) => T): T => usher.running.app.get(type, { strict: false });
  const [outcomes, secrets, sender] = [get(OutcomeStore), get(SigningSecrets), get(NotificationSender)];
  const store = newStore(SuspendedStore);
  const delivery = new Delivery(store, outcomes, secrets, sender, get(DeliveryEvents), get(DatabaseOutage));
  expect(await delivery.attempt(id)).toMatchObject({ kind: 'deferred' });
  const { manager } = usher.dataSource;
  expect(await manager.findOneByOrFail(Webhook, { id })).toMatchObject({ status: 'PENDING', attempts: 0 });
  expect(await manager.countBy(WebhookAttempt, { webhookId: id })).toBe(0);
});
