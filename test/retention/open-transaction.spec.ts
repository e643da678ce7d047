import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Client, ClientSecret } from '../../src/clients/client.entity.js';
import { MembersService } from '../../src/members/members.service.js';
import { DeliveryQueue } from '../../src/webhooks/queue/delivery.queue.js';
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

const get = <T>(type: new (...injected: never[]) => T): T => usher.running.app.get(type, { strict: false });

async function erase(clientId: string): Promise<void> {
  await usher.clients.setDisabled(clientId, true);
  await erasureIn(usher.dataSource, get).eraseClient(clientId);
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

test('a client or a member that is enabled again during the erasure keeps the row', async () => {
  const { id } = await usher.client(receiver.url);
  const members = get(MembersService);
  const { name } = await members.create('again@cinema.example', 'a long password');
  const setDisabled = async (isDisabled: boolean): Promise<void> => {
    await usher.clients.setDisabled(id, isDisabled);
    await members.setDisabled(name, isDisabled);
  };
  const queue = { remove: () => setDisabled(false) } as unknown as DeliveryQueue;
  const erasure = erasureIn(usher.dataSource, (type) =>
    type === (DeliveryQueue as unknown) ? (queue as never) : get(type),
  );
  for (const erasing of [() => erasure.eraseClient(id), () => erasure.eraseMember(name)]) {
    await setDisabled(true);
    await expect(erasing()).rejects.toThrow('is enabled; disable');
  }
  expect(await usher.clients.get(id)).toMatchObject({ disabledAt: null });
  expect(await members.get(name)).toMatchObject({ disabledAt: null });
});
