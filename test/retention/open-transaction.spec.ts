import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Client, ClientSecret } from '../../src/clients/client.entity.js';
import { Webhook, WebhookAttempt } from '../../src/webhooks/webhook.entity.js';
import { BACKEND } from '../support/backend.js';
import { erasureIn } from '../support/erasure.js';
import { eventually } from '../support/eventually.js';
import { TestReceiver } from '../support/receiver.js';
import { TestUsher } from '../support/usher.js';

let usher: TestUsher;
let receiver: TestReceiver;
beforeAll(async () => {
  receiver = await TestReceiver.start();
  usher = await TestUsher.start();
});
afterAll(async () => {
  await usher.stop();
  receiver.close();
});

async function erase(clientId: string): Promise<void> {
  await usher.clients.setDisabled(clientId, true);
  await erasureIn(usher.dataSource, (type) => usher.running.app.get(type, { strict: false })).eraseClient(clientId);
}

test('a webhook that is committed after its client was erased is deleted, and never sent', async () => {
  const { id: clientId } = await usher.client(receiver.url);
  const { manager } = usher.dataSource;
  const webhookId = await usher.dataSource.transaction(async (open) => {
    const { webhook } = await usher.webhooks.notify({ referenceId: 'Late', clientId, data: {} }, { manager: open });
    // The embedded database runs one transaction at a time.
    if (BACKEND === 'embedded') {
      await open.delete(ClientSecret, { clientId });
      await open.delete(Client, { id: clientId });
    } else await erase(clientId);
    return webhook.id;
  });
  await eventually('the webhook is deleted', async () => !(await manager.existsBy(Webhook, { id: webhookId })));
  expect(await manager.countBy(WebhookAttempt, { webhookId })).toBe(0);
  expect(receiver.of('Late')).toEqual([]);
});
