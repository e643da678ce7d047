import { newId } from '../../../../src/values/identifier.js';
import { addOutcomes } from '../../../../src/webhooks/figures/add-outcomes.js';
import { Webhook } from '../../../../src/webhooks/webhook.entity.js';
import type { TestClient } from '../../../support/usher.js';

const DAY_MS = 86_400_000;

/** Notifications that ended FAILED three and nine days ago. */
export async function oldFailures({ usher, id: clientId }: TestClient, notifyUrl: string): Promise<void> {
  for (const days of [3, 9]) {
    const referenceId = `failed-${days}-days-ago`;
    const { webhook } = await usher.webhooks.notify({ referenceId, clientId, data: {} });
    await usher.webhook(referenceId, 'SUCCESS');
    const at = Date.now() - days * DAY_MS;
    const failed = {
      id: newId('sandbox', at),
      status: 'FAILED',
      liveKey: null,
      createdAt: at,
      finishedAt: at,
    } as const;
    await usher.dataSource.manager.update(Webhook, { id: webhook.id }, failed);
    const sent = { clientId, notifyUrl, createdAt: at };
    await usher.dataSource.transaction((manager) =>
      addOutcomes(manager, [
        { webhook: sent, endedAt: at, attempt: { durationMs: 9, hasFailed: true }, ended: 'FAILED' },
      ]),
    );
  }
}

/** A host that failed in nine of ten attempts of a day and a half ago, and in five of ten of today. */
export async function worstReceiver({ usher, id: clientId }: TestClient): Promise<void> {
  const outcomes = [9, 5].flatMap((failures, day) => {
    const endedAt = Date.now() - (1 - day) * 1.5 * DAY_MS;
    const webhook = { clientId, notifyUrl: 'https://worst.example/notify', createdAt: endedAt };
    return Array.from({ length: 100 }, (_, n) => {
      const hasFailed = n % 10 < failures;
      return {
        webhook,
        endedAt,
        attempt: { durationMs: 20, hasFailed },
        ended: hasFailed ? null : ('SUCCESS' as const),
      };
    });
  });
  await usher.dataSource.transaction((manager) => addOutcomes(manager, outcomes));
}
