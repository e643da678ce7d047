import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { DeliveryPauses } from '../../../src/webhooks/delivery-pauses.js';
import { DeliveryPause, type PauseSubject } from '../../../src/webhooks/webhook.entity.js';
import { UsherHealth } from '../../../src/webhooks/usher-health.js';
import { AuditLog } from '../../../src/audit/audit.module.js';
import { eventually } from '../../support/eventually.js';
import { answer, TestReceiver } from '../../support/receiver.js';
import { type TestClient, TestUsher } from '../../support/usher.js';

let usher: TestUsher;
let receiver: TestReceiver;
let client: TestClient;
let pauses: DeliveryPauses;
let host: PauseSubject;

beforeAll(async () => {
  usher = await TestUsher.start();
  receiver = await TestReceiver.start();
  client = await usher.client(receiver.url);
  pauses = usher.running.app.get(DeliveryPauses, { strict: false });
  host = `host:${new URL(receiver.url).host}`;
});
afterAll(async () => {
  receiver.close();
  await usher.stop();
});
afterEach(() => {
  receiver.behaviour = answer(200);
});

const held = (key: string) =>
  eventually(`the webhook of ${key} is held`, async () => {
    const [newest] = await usher.webhooks.find(key);
    return newest?.pausedSince ? newest : null;
  });

const account = async () => (await usher.request('GET', '/client', { authorization: client.basic })).body;

test.each(['client', 'host'])(
  'notifications of a paused %s wait, use up no attempt, and are sent after it is resumed',
  async (kind) => {
    const subject: PauseSubject = kind === 'client' ? `client:${client.id}` : host;
    await pauses.pause(subject, 'The partner moves its servers');
    const key = await client.completedOrder();
    const webhook = await held(key);
    expect(webhook).toMatchObject({ status: 'PENDING', attemptCount: 0, nextAttemptAt: null });
    expect(await usher.webhooks.show(webhook.id)).toMatchObject({ attempts: [], plan: null });
    // The job has ended, so nothing looks at the row again.
    await eventually('its job has completed', async () => (await usher.queue.getJob(webhook.id))?.isCompleted());
    const health = usher.running.app.get(UsherHealth, { strict: false });
    expect(await health.due()).toEqual({ count: 0, oldestAgeMs: 0 });
    expect(receiver.of(key)).toEqual([]);
    await pauses.resume(subject);
    await usher.webhook(key, 'SUCCESS');
    expect(receiver.of(key).map(({ headers }) => headers['x-webhook-attempt'])).toEqual(['1']);
    await usher.webhook(await client.completedOrder(), 'SUCCESS');
  },
);

test('an attempt that runs when the pause begins is finished, and the next one waits', async () => {
  let finish = (): void => undefined;
  receiver.behaviour = (response) => (finish = () => void response.writeHead(500).end());
  const key = await client.completedOrder();
  await eventually('the attempt runs', () => receiver.of(key).length === 1);
  await pauses.pause(`client:${client.id}`, 'Maintenance');
  receiver.behaviour = answer(200);
  finish();
  expect(await held(key)).toMatchObject({ attemptCount: 1 });
  await pauses.resume(`client:${client.id}`);
  expect(await usher.webhook(key, 'SUCCESS')).toMatchObject({ attemptCount: 2 });
});

test('other clients are still notified during a pause, and the end of one of two pauses releases nothing', async () => {
  const other = await usher.client(receiver.url);
  await pauses.pause(`client:${client.id}`, 'Maintenance');
  await usher.webhook(await other.completedOrder(), 'SUCCESS');
  const key = await client.completedOrder();
  await held(key);
  await pauses.pause(host, 'Maintenance');
  const first = await usher.dataSource.manager.findOneByOrFail(DeliveryPause, { subject: `client:${client.id}` });
  await pauses.resume(`client:${client.id}`);
  const again = await held(key);
  expect(Date.parse(again.pausedSince!)).toBeGreaterThan(first.since);
  expect(receiver.of(key)).toEqual([]);
  await pauses.resume(host);
  await usher.webhook(key, 'SUCCESS');
});

test('a client sees its pause and that of a host, and the audit who made them', async () => {
  const started = { reason: 'Too many errors' };
  await pauses.pause(`client:${client.id}`, started.reason);
  await pauses.pause(host, started.reason);
  const since = expect.stringMatching(/^20\d\d-/) as unknown;
  expect(await account()).toMatchObject({ deliveriesPaused: { ...started, since } });
  expect((await client.call('GET', '/webhooks/health')).body).toMatchObject({ hosts: [{ pausedSince: since }] });
  const audit = usher.running.app.get(AuditLog, { strict: false });
  const [event] = await audit.list({ subject: host });
  expect(event).toMatchObject({ action: 'delivery.paused', detail: started });
  await pauses.resume(`client:${client.id}`);
  await pauses.resume(host);
  expect(await account()).toMatchObject({ deliveriesPaused: null });
  expect((await audit.list({ subject: host }))[0]).toMatchObject({ action: 'delivery.resumed' });
});

test('a pause names the clients of its host, and what cannot be paused or resumed is refused', async () => {
  const elsewhere = await usher.client('http://127.0.0.1:9999/');
  const own = await usher.client(null);
  await usher.webhook(await own.completedOrder({ notifyUrl: `${receiver.url}/own` }), 'SUCCESS');
  const named = (await pauses.clientsAt(host.slice('host:'.length))).map(({ id }) => id);
  expect(named).toEqual(expect.arrayContaining([client.id, own.id]));
  expect(named).not.toContain(elsewhere.id);
  const refusals = [
    [() => pauses.pause('client:nobody', 'Maintenance'), 404],
    // MySQL ignores trailing spaces when it compares ids.
    [() => pauses.pause(`client:${client.id} `, 'Maintenance'), 404],
    [() => pauses.pause('host:https://example.com', 'Maintenance'), 422],
    [() => pauses.pause(`host:${'a.'.repeat(200)}example`, 'Maintenance'), 422],
    [() => pauses.pause(host, ' '), 422],
    [() => pauses.resume(host), 409],
  ] as const;
  for (const [refused, status] of refusals) await expect(refused()).rejects.toMatchObject({ status });
  await pauses.pause(host, 'Maintenance');
  await expect(pauses.pause(host, 'Maintenance')).rejects.toMatchObject({ status: 409 });
  await pauses.resume(host);
});
