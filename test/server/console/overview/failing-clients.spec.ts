import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { AuditLog } from '../../../../src/audit/audit.module.js';
import { noteAttempts } from '../../../../src/webhooks/contact/failing-hosts.js';
import { eventually } from '../../../support/eventually.js';
import { answer, TestReceiver } from '../../../support/receiver.js';
import { ONE_ATTEMPT, type TestClient, TestUsher } from '../../../support/usher.js';
import { ConsolePages } from '../console-pages.js';
import { DeliveryPause } from '../../../../src/webhooks/webhook.entity.js';

let usher: TestUsher;
let receiver: TestReceiver;
const pages = new ConsolePages(() => usher);

beforeAll(async () => {
  usher = await TestUsher.start(ONE_ATTEMPT);
  receiver = await TestReceiver.start();
});
afterAll(async () => {
  await usher.stop();
  receiver.close();
});

/** A client that has lost a notification. */
async function failing(): Promise<TestClient> {
  const client = await usher.client(receiver.url);
  receiver.behaviour = answer(500);
  await usher.webhook(await client.completedOrder(), 'FAILED');
  return client;
}

/** The client's row among the failing ones, as text. */
async function rowOf({ id }: TestClient): Promise<string> {
  const rows = (await pages.get('/ops?range=7d')).match(/<tr role="row">[^]*?<\/tr>/g) ?? [];
  const row = rows.find((one) => one.includes(`title="${id}"`) && one.includes('Not delivered'));
  return row?.replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ') ?? '';
}

test('the overview does not say that notifications arrive while a receiver fails whose alarm was acknowledged', async () => {
  await usher.webhook(await (await usher.client(receiver.url)).completedOrder(), 'SUCCESS');
  const { id: clientId } = await usher.client();
  const host = 'acknowledged.example';
  const at = Date.now();
  const failure = { error: 'answered 500', diagnosis: 'not-found', endedFailed: false } as const;
  await usher.dataSource.transaction((manager) =>
    noteAttempts(manager, [{ clientId, host, endedAt: at, madeAt: at, failure }]),
  );
  await pages.counted('/ops', /1 of \d clients fails; no notification lost/);
  await pages.post('/ops/acknowledge', { client: clientId, hosts: host, note: 'known' });
  const text = await pages.get('/ops');
  expect(text).toContain('receivers whose alarm was acknowledged still fail');
  expect(text).not.toContain('Notifications reach their receivers');
});

test('deliveries of a failing client are paused and resumed in its row, and the page shows it at once in the same range', async () => {
  const [one, other] = [await failing(), await failing()];
  await eventually('both are listed', async () => (await rowOf(one)) && (await rowOf(other)));
  const post = (action: string, more: Record<string, string> = {}) =>
    pages.post(`/ops/${action}`, { client: one.id, range: '7d', ...more });

  expect((await post('pause', { reason: ' ' })).status).toBe(422);
  const { location } = await post('pause', { reason: 'Moves its servers' });
  expect(location).toBe('/ops?range=7d&done=pause');
  expect(await pages.get(location)).toContain('Deliveries are paused: notifications wait');
  expect(await pages.get(location)).toMatch(/are paused since[^]*?Moves its servers\.<\/strong>/);
  expect(await rowOf(one)).toMatch(/A test client paused 1 .* Resume deliveries/);
  const text = await pages.get('/ops?range=7d');
  for (const action of ['resend', 'acknowledge', 'pause', 'resume'])
    for (const { id } of [one, other]) expect(text.split(`id="${action}-${id}"`).length).toBeLessThan(3);
  expect(text).toContain(`id="resume-${one.id}"`);
  // None ended FAILED a week before.
  expect(await rowOf(other)).toMatch(/A test client 1 1 was 0 .* Pause deliveries/);
  const audit = usher.running.app.get(AuditLog, { strict: false });
  expect(await audit.list({ subject: `client:${one.id}`, action: 'delivery.paused' })).toMatchObject([
    { actor: 'operator:ops', detail: { reason: 'Moves its servers' } },
  ]);

  receiver.behaviour = answer(200);
  const waiting = await one.completedOrder();
  await usher.webhook(await other.completedOrder(), 'SUCCESS');
  expect(receiver.of(waiting)).toEqual([]);
  const { id } = await usher.webhook(waiting, 'PENDING');
  const held = await pages.counted(`/ops/webhooks/${id}`, 'Deliveries are paused, so the notification is held');
  expect(held).not.toContain('made at once');
  expect((await post('resume')).location).toBe('/ops?range=7d&done=resume');
  await usher.webhook(waiting, 'SUCCESS');
  expect(await pages.get('/ops?range=7d')).not.toContain('are paused since');
  expect(await rowOf(one)).toMatch(/A test client 1 .* Pause deliveries/);
});

test('the overview says if there are more pauses than it shows', async () => {
  const pauses = Array.from({ length: 21 }, (_, n): DeliveryPause => {
    return { subject: `host:h${n}.example`, since: 1_000 + n, reason: 'Moves', resumedAt: null };
  });
  const { manager } = usher.dataSource;
  await manager.insert(DeliveryPause, pauses.slice(0, 20));
  const all = await eventually('the last one is shown', async () => {
    const text = await pages.get('/ops');
    return text.includes('h19.example') && text;
  });
  expect(all).not.toContain('Only the oldest pauses are shown.');
  await manager.insert(DeliveryPause, pauses.slice(20));
  await eventually('it says so', async () => (await pages.get('/ops')).includes('Only the oldest pauses are shown.'));
  const text = await pages.get('/ops');
  expect([text.includes('h19.example'), text.includes('h20.example')]).toEqual([true, false]);
  expect(await pages.get('/ops/audit?action=delivery.paused')).toContain('delivery.paused');
});
