import { beforeAll, expect, test } from '@jest/globals';
import { tableOf } from '../../src/database/data-source.js';
import { newId } from '../../src/values/identifier.js';
import { ResentWebhook, WebhookResend } from '../../src/webhooks/undelivered/webhook-resend.entity.js';
import { erasureIn } from '../support/erasure.js';
import { TestUsher } from '../support/usher.js';

const DIGITS = `(SELECT 0 AS n${[1, 2, 3, 4, 5, 6, 7, 8, 9].map((digit) => ` UNION ALL SELECT ${digit}`).join('')})`;

let usher: TestUsher;
beforeAll(async () => {
  usher = await TestUsher.shared();
});

/** More requests than a statement of Postgres may have parameters. */
async function insertRequests(clientId: string): Promise<void> {
  await usher.dataSource.query(`
    INSERT INTO ${tableOf(usher.dataSource, WebhookResend)}
      (id, client_id, is_limited, is_stopped, resent, refused, actor, created_at, finished_at)
    SELECT CONCAT('${newId('sandbox', Date.now()).slice(0, -5)}', a.n, b.n, c.n, d.n, e.n),
      '${clientId}', true, false, 0, 0, 'host', 0, 0
    FROM ${DIGITS} a, ${DIGITS} b, ${DIGITS} c, ${DIGITS} d, ${DIGITS} e WHERE a.n < 7`);
}

test('a client with 70,000 requests to resend is erased, with what they recorded', async () => {
  const { id: clientId } = await usher.client('https://receiver.example/notify');
  const { manager } = usher.dataSource;
  await insertRequests(clientId);
  const [last] = await manager.find(WebhookResend, { where: { clientId }, order: { id: 'DESC' }, take: 1 });
  const resendId = String(last?.id);
  await manager.insert(ResentWebhook, { resendId, webhookId: newId('sandbox', Date.now()), refusal: null });
  await usher.clients.setDisabled(clientId, true);
  await erasureIn(usher.dataSource, (type) => usher.running.app.get(type, { strict: false })).eraseClient(clientId);
  expect(await manager.countBy(WebhookResend, { clientId })).toBe(0);
  expect(await manager.countBy(ResentWebhook, { resendId })).toBe(0);
});
