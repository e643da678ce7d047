import { expect, test } from '@jest/globals';
import { Webhook } from '../../src/webhooks/webhook.entity.js';
import { freePort } from '../support/ports.js';
import { usher as run } from '../support/process.js';
import { TestUsher } from '../support/usher.js';

test('a client is erased while the queue is down, and its job stays, which finds no row', async () => {
  const usher = await TestUsher.shared();
  const client = await usher.client('https://receiver.example/notify');
  const { id } = await usher.webhook(await client.completedOrder(), 'PENDING');
  await usher.clients.setDisabled(client.id, true);
  const away = { ...usher.settings, QUEUE_URL: `redis://127.0.0.1:${await freePort()}` };
  const { code, stdout } = await run(away, ['client', 'erase', client.id, '--yes']);
  expect([code, stdout]).toEqual([0, expect.stringMatching(/^webhooks +1$/m)]);
  expect(await usher.dataSource.manager.countBy(Webhook, { clientId: client.id })).toBe(0);
  expect(await usher.queue.getJob(id)).toBeDefined();
});
