import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { AuditLog } from '../../src/audit/audit.module.js';
import { USHER_OPTIONS } from '../../src/usher.options.js';
import { WebhookRecorder } from '../../src/webhooks/record/webhook.recorder.js';
import { ResendWork } from '../../src/webhooks/undelivered/resend-work.js';
import { WebhookResend } from '../../src/webhooks/undelivered/webhook-resend.entity.js';
import { Webhook } from '../../src/webhooks/webhook.entity.js';
import { TestUsher } from '../support/usher.js';
import { insertFailed } from '../webhooks/undelivered/support.js';

let usher: TestUsher;
beforeAll(async () => {
  usher = await TestUsher.start({ USHER_ROLE: 'api' });
});
afterAll(() => usher.stop());

const get = <T>(service: abstract new (...injected: never[]) => T): T =>
  usher.running.app.get<T>(service, { strict: false });

test('two requests at the same moment: the second waits until the first has recorded, and resends nothing that failed again', async () => {
  const client = await usher.client('http://127.0.0.1:8080/notify');
  const [id = ''] = await insertFailed(client, ['resent-twice']);
  const { manager } = usher.dataSource;
  const [first, second] = [await requested(), await requested()];

  /** Runs while the first request has read what is FAILED and has recorded nothing. */
  const record: WebhookRecorder['record'] = async (transaction, webhook) => {
    const taken = manager.transaction((other) =>
      other.findOneOrFail(Webhook, { where: { id }, lock: { mode: 'pessimistic_write', onLocked: 'nowait' } }),
    );
    await expect(taken).rejects.toThrow(/lock/i);
    return get(WebhookRecorder).record(transaction, webhook);
  };
  const options = usher.running.app.get(USHER_OPTIONS, { strict: false });
  const work = new ResendWork(usher.dataSource, { record } as WebhookRecorder, get(AuditLog), options);
  await work.batch(first);
  await manager.update(Webhook, { resendOf: id }, { status: 'FAILED', liveKey: null, nextAttemptAt: null });
  await get(ResendWork).batch(second);
  expect(await manager.countBy(Webhook, { resendOf: id })).toBe(1);
  const views = await manager.find(WebhookResend, { where: [{ id: first }, { id: second }], order: { id: 'ASC' } });
  expect(views.map(({ resent, refused }) => [resent, refused])).toEqual([
    [1, 0],
    [0, 1],
  ]);

  async function requested(): Promise<string> {
    return String((await client.call('POST', '/webhooks/resend', { status: 'FAILED' })).body.id);
  }
});
