import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import { WebhookList } from '../../../src/webhooks/search/webhook-list.js';
import { WebhookAttempt } from '../../../src/webhooks/webhook.entity.js';
import { TestUsher } from '../../support/usher.js';
import { insertFailed } from '../undelivered/support.js';

let usher: TestUsher;
beforeAll(async () => {
  usher = await TestUsher.start({ WEBHOOK_RETRY_EVERY: '24h' });
});
afterAll(() => usher.stop());

test('a list looks at each attempt a few times, however many notifications it has', async () => {
  const { manager } = usher.dataSource;
  const references = Array.from({ length: 100 }, (_, n) => `order-${n}`);
  const ids = await insertFailed(await usher.client(), references);
  const attempt = { number: 1, startedAt: 1, durationMs: 5, diagnosis: 'gone', error: '410' } as const;
  await manager.insert(
    WebhookAttempt,
    ids.map((webhookId) => ({ webhookId, ...attempt })),
  );
  let looks = 0;
  const counting = <Row extends object>(row: Row): Row =>
    row instanceof WebhookAttempt
      ? new Proxy(row, {
          get: (of, name) => {
            looks += Number(name === 'webhookId');
            return Reflect.get(of, name) as unknown;
          },
        })
      : row;
  const find = manager.find.bind(manager);
  jest.spyOn(manager, 'find').mockImplementation(async (...given) => (await find(...given)).map(counting));
  const listed = await usher.running.app.get(WebhookList, { strict: false }).listed(ids);
  expect(listed.map(({ webhook, failure }) => [webhook.id, failure?.diagnosis?.code])).toEqual(
    ids.map((id) => [id, 'gone']),
  );
  expect([looks > 0, looks <= 5 * ids.length]).toEqual([true, true]);
});
