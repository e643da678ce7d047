import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { NOTIFY_ORDER_COMPLETION } from '../../src/protocol/notification.js';
import { newId } from '../../src/values/identifier.js';
import { MassResend } from '../../src/webhooks/mass-resend.js';
import { Webhook } from '../../src/webhooks/webhook.entity.js';
import { usherJson } from '../support/process.js';
import { TestReceiver } from '../support/receiver.js';
import { type TestClient, TestUsher } from '../support/usher.js';

const HOUR_MS = 3_600_000;
/** More than one page. */
const DELIVERED_COUNT = 505;

let usher: TestUsher;
let receiver: TestReceiver;
beforeAll(async () => {
  usher = await TestUsher.start({ WEBHOOK_MAX_ATTEMPTS: '1' });
  receiver = await TestReceiver.start();
});
afterAll(async () => {
  await usher.stop();
  receiver.close();
});

/** Inserts FAILED webhooks of these references that ended `hoursAgo` hours ago. */
async function failed({ id: clientId }: TestClient, references: string[], hoursAgo = 1): Promise<void> {
  const endedAt = Date.now() - hoursAgo * HOUR_MS;
  const rows = references.map((referenceId) => ({
    id: newId('sandbox', endedAt),
    referenceId,
    eventType: NOTIFY_ORDER_COMPLETION,
    liveKey: null,
    clientId,
    notifyUrl: receiver.url,
    usesClientUrl: true,
    body: JSON.stringify({ data: { key: referenceId } }),
    status: 'FAILED' as const,
    attempts: 1,
    nextAttemptAt: null,
    createdAt: endedAt,
    finishedAt: endedAt,
  }));
  await usher.dataSource.manager.insert(Webhook, rows);
}

const references = (name: string, count: number): string[] => Array.from({ length: count }, (_, at) => `${name}-${at}`);

test('every FAILED webhook is resent, once for each order, even if an earlier run was interrupted', async () => {
  const one = await usher.client(receiver.url);
  const other = await usher.client(receiver.url);
  const recent = references('recent', 14);
  const rest = [...references('old', 1), ...references('other', 2)];
  await failed(one, rest.slice(0, 1), 48);
  await failed(other, rest.slice(1), 2);
  await failed(one, recent, 2);
  const delivered = await one.completedOrder();
  await usher.webhook(delivered, 'SUCCESS');
  await failed(one, Array<string>(DELIVERED_COUNT).fill(delivered));
  const all = usher.running.app.get(MassResend, { strict: false });

  let sent = 0;
  const interrupt = (done: number): void => {
    sent = done - DELIVERED_COUNT;
    if (sent > 0) throw new Error('interrupted');
  };
  await expect(all.run({ clientId: one.id, onProgress: interrupt })).rejects.toThrow('interrupted');
  expect(sent).toBeLessThan(recent.length);

  const options = ['--client', one.id, '--since', '24h'];
  expect(await usherJson(usher.settings, ['webhook', 'resend', '--all-failed', ...options])).toEqual({
    resent: recent.length - sent,
    skipped: DELIVERED_COUNT + sent,
  });
  const progressCalls: number[][] = [];
  expect(await all.run({ onProgress: (...progress) => progressCalls.push(progress) })).toEqual({
    resent: rest.length,
    skipped: DELIVERED_COUNT + recent.length,
  });
  const total = DELIVERED_COUNT + recent.length + rest.length;
  expect(progressCalls.at(-1)).toEqual([total, total]);
  for (const reference of [...recent, ...rest]) await usher.webhook(reference, 'SUCCESS');
  for (const reference of [...recent, ...rest, delivered]) expect(receiver.of(reference)).toHaveLength(1);
});
