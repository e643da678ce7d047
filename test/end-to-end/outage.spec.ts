import { createHash } from 'node:crypto';
import { verifyNotification } from 'usher-receiver';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { MovieOrder } from '../../src/orders/movie-order.entity.js';
import { FailingHost } from '../../src/webhooks/contact/failing-host.entity.js';
import { Webhook } from '../../src/webhooks/webhook.entity.js';
import { eventually } from '../support/eventually.js';
import { MailServer } from '../support/mail-server.js';
import { refusingUrl } from '../support/ports.js';
import { TestReceiver } from '../support/receiver.js';
import { basic, type TestClient, TestUsher } from '../support/usher.js';

const DAY_MS = 86_400_000;
const CONTACT = 'ops@partner.example';
const ORDERS = 12;

let usher: TestUsher;
let receiver: TestReceiver;
let mail: MailServer;
let client: TestClient;
beforeAll(async () => {
  mail = await MailServer.start();
  receiver = await TestReceiver.start();
  usher = await TestUsher.start({ SMTP_URL: mail.url, SMTP_FROM: 'usher@cinema.example' });
});
afterAll(async () => {
  await usher.stop();
  await mail.close();
  receiver.close();
});

/** Moves everything that has happened one day into the past, as if the endpoint had been down since then. */
async function aDayLater(): Promise<void> {
  const earlier = (column: string) => () => `${column} - ${DAY_MS}`;
  const { manager } = usher.dataSource;
  await manager.updateAll(MovieOrder, { createdAt: earlier('created_at'), lastUpdatedAt: earlier('last_updated_at') });
  await manager.updateAll(Webhook, { createdAt: earlier('created_at'), finishedAt: earlier('finished_at') });
  await manager.updateAll(FailingHost, {
    failingSince: earlier('failing_since'),
    firstEndedFailedAt: earlier('first_ended_failed_at'),
  });
}

const asClient = (method: string, path: string, body?: unknown) =>
  usher.request(method, path, { authorization: basic(client.id, client.secret) }, body);

/** The notifications of `GET /webhooks/undelivered`, which are fewer than a page. */
async function undelivered(): Promise<{ headers: Record<string, string>; body: string }[]> {
  const { body } = await client.call('GET', '/webhooks/undelivered');
  return body.data as never;
}

/** What the partner has: the keys of the notifications that are genuine, whichever way they came. */
const keysOf = (bodies: string[]): string[] =>
  bodies.map((body) => (JSON.parse(body) as { data: { key: string } }).data.key).sort();

test('a client whose endpoint was down for a day learns why, is told, catches up and proves that nothing is missing', async () => {
  client = await usher.client(await refusingUrl());
  await usher.clients.setContact(client.id, CONTACT);
  const keys: string[] = [];
  for (let n = 0; n < ORDERS; n += 1) keys.push(await client.completedOrder());
  keys.sort();
  await eventually('all notifications are FAILED', async () => {
    const { body } = await client.call('GET', '/webhooks?status=FAILED');
    return (body.data as unknown[]).length === ORDERS;
  });
  const [told] = await mail.waitFor(CONTACT);
  expect(told?.text).toContain('connection refused');
  expect(told?.text).toContain('/webhooks/resend');
  await aDayLater();

  // Why: the health, and each attempt of a notification.
  const health = await client.call('GET', '/webhooks/health');
  expect(JSON.stringify(health.body)).toContain('connection-refused');
  const { body: failed } = await client.call('GET', '/webhooks?status=FAILED');
  const [{ id } = { id: '' }] = failed.data as { id: string }[];
  const { body: shown } = await client.call('GET', `/webhooks/${id}`);
  expect(shown.attempts).toHaveLength(5);
  for (const { diagnosis } of shown.attempts as { diagnosis: object }[])
    expect(diagnosis).toMatchObject({ code: 'connection-refused', remedy: expect.stringMatching(/\w/) });

  // What it missed can be read at once, and verifies like a notification.
  const missed = await undelivered();
  expect(keysOf(missed.map(({ body }) => body))).toEqual(keys);
  for (const { headers, body } of missed)
    expect(verifyNotification({ headers, rawBody: Buffer.from(body), secret: client.secret })).toEqual(
      JSON.parse(body),
    );

  // It repairs its URL, which is tried with a signed sample first, and has everything sent again.
  expect((await asClient('PUT', '/client/notify-url', { notifyUrl: await refusingUrl() })).status).toBe(422);
  expect((await asClient('PUT', '/client/notify-url', { notifyUrl: receiver.url })).status).toBe(200);
  const { status, body: resend } = await client.call('POST', '/webhooks/resend', { status: 'FAILED' });
  expect(status).toBe(202);
  const progress = await eventually('the resend is finished', async () => {
    const { body } = await client.call('GET', `/webhook-resends/${String(resend.id)}`);
    return body.state === 'FINISHED' ? body : null;
  });
  expect(progress).toMatchObject({ selected: ORDERS, resent: ORDERS, refused: 0 });
  for (const key of keys) expect(await receiver.waitFor(key)).toHaveLength(1);
  for (const key of keys) await usher.webhook(key, 'SUCCESS');
  expect(await undelivered()).toEqual([]);

  // Its own records against the totals of the day.
  const { body: list } = await client.call('GET', '/movie-orders?status=COMPLETED');
  const day = (list.data as { lastUpdatedAt: string }[])[0]!.lastUpdatedAt.slice(0, 10);
  expect(Date.parse(day)).toBeLessThan(Date.now() - DAY_MS);
  const received = receiver.arrivals.filter(({ key }) => keys.includes(key)).map(({ rawBody }) => rawBody.toString());
  const keysDigest = createHash('sha256').update(keysOf(received).join('\n')).digest('hex');
  const { body: totals } = await client.call('GET', `/movie-orders/totals?day=${day}`);
  expect(totals.currencies).toEqual([{ currencyCode: 'MYR', count: ORDERS, payableAmount: ORDERS * 4300, keysDigest }]);
});
