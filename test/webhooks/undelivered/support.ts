import { NOTIFY_ORDER_COMPLETION } from '../../../src/values/notification.js';
import { newId } from '../../../src/values/identifier.js';
import { Webhook } from '../../../src/webhooks/webhook.entity.js';
import { eventually } from '../../support/eventually.js';
import type { TestClient, TestUsher } from '../../support/usher.js';

export const HOUR_MS = 3_600_000;

export const references = (name: string, count: number): string[] =>
  Array.from({ length: count }, (_, at) => `${name}-${at}`);

/** Inserts FAILED webhooks of these references that ended `hoursAgo` hours ago. Returns their ids. */
export async function insertFailed(
  { usher, id: clientId }: TestClient,
  of: string[],
  hoursAgo = 1,
  more: Partial<Webhook> = {},
): Promise<string[]> {
  const endedAt = Date.now() - hoursAgo * HOUR_MS;
  const rows = of.map((referenceId) => ({
    id: newId('sandbox', endedAt),
    referenceId,
    eventType: NOTIFY_ORDER_COMPLETION,
    liveKey: null,
    clientId,
    notifyUrl: 'http://127.0.0.1:9/gone',
    usesClientUrl: true,
    body: JSON.stringify({ data: { key: referenceId, title: 'Amélie — 天使爱美丽' } }),
    status: 'FAILED' as const,
    attempts: 1,
    nextAttemptAt: null,
    createdAt: endedAt,
    finishedAt: endedAt,
    ...more,
  }));
  for (let from = 0; from < rows.length; from += 500)
    await usher.dataSource.manager.insert(Webhook, rows.slice(from, from + 500));
  return rows.map(({ id }) => id);
}

type Call = TestClient['call'];

/** Waits until a request to resend is finished, and returns how it ended. */
export const finished = (call: Call, id: unknown): Promise<Record<string, unknown>> =>
  eventually(`the resend ${String(id)} is finished`, async () => {
    const { body } = await call('GET', `/webhook-resends/${String(id)}`);
    return body.state === 'FINISHED' ? body : null;
  });

/** How many webhooks resend one of these, by the id of the webhook that they resend. */
export async function resendsOf({ dataSource }: TestUsher, client: TestClient): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (const { resendOf } of await dataSource.manager.findBy(Webhook, { clientId: client.id }))
    if (resendOf !== null) counts.set(resendOf, (counts.get(resendOf) ?? 0) + 1);
  return counts;
}
