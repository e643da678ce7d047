import { newId } from '../../../../src/values/identifier.js';
import { addOutcomes } from '../../../../src/webhooks/figures/add-outcomes.js';
import { Webhook } from '../../../../src/webhooks/webhook.entity.js';
import type { TestClient } from '../../../support/usher.js';

/** A FAILED notification of a client, and the figures of its end `at` a time. No worker may run. Returns its id. */
export async function lose(
  { usher, id: clientId }: TestClient,
  referenceId: string,
  at: number,
  createdAt = at,
): Promise<string> {
  const notifyUrl = 'https://lost.example/notify';
  const { webhook } = await usher.webhooks.notify({ referenceId, clientId, notifyUrl, data: {} });
  const id = newId('sandbox', createdAt);
  const ended = { status: 'FAILED', liveKey: null, nextAttemptAt: null, finishedAt: at } as const;
  await usher.dataSource.manager.update(Webhook, { id: webhook.id }, { id, createdAt, ...ended });
  const sent = { clientId, notifyUrl, createdAt };
  await usher.dataSource.transaction((manager) =>
    addOutcomes(manager, [
      { webhook: sent, endedAt: at, attempt: { durationMs: 10, hasFailed: true }, ended: 'FAILED' },
    ]),
  );
  return id;
}
