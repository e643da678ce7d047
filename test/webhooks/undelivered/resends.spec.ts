import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { AuditLog } from '../../../src/audit/audit.module.js';
import { WebhookRecorder } from '../../../src/webhooks/record/webhook.recorder.js';
import { ResendWork } from '../../../src/webhooks/undelivered/resend-work.js';
import { ResentWebhook, WebhookResend } from '../../../src/webhooks/undelivered/webhook-resend.entity.js';
import { WebhookResends } from '../../../src/webhooks/undelivered/webhook-resends.js';
import { Webhook } from '../../../src/webhooks/webhook.entity.js';
import { USHER_OPTIONS } from '../../../src/usher.options.js';
import { application, ownerToken, signedIn, startWithIssuer } from '../../auth/authorize/support.js';
import { eventually } from '../../support/eventually.js';
import { usherJson } from '../../support/process.js';
import { answer, TestReceiver } from '../../support/receiver.js';
import { ONE_ATTEMPT } from '../../support/usher.js';
import type { TestClient, TestUsher } from '../../support/usher.js';
import { finished, HOUR_MS, insertFailed, references, resendsOf } from './support.js';

/** Of one client; more than a batch. */
const LIMIT = 60;

let usher: TestUsher;
let receiver: TestReceiver;
beforeAll(async () => {
  const settings = { ...ONE_ATTEMPT, WEBHOOK_PENDING_LIMIT: String(LIMIT) };
  usher = await startWithIssuer(settings);
  receiver = await TestReceiver.start();
});
afterEach(() => {
  receiver.behaviour = answer(200);
});
afterAll(async () => {
  await usher.stop();
  receiver.close();
});

const get = <T>(service: abstract new (...injected: never[]) => T): T =>
  usher.running.app.get<T>(service, { strict: false });
const holderOf = ({ id }: TestClient) => ({ clientId: id, ownerId: null });
const FAILED = { status: 'FAILED' };

test('a request to resend begins whatever request id an application passes', async () => {
  const client = await usher.client(receiver.url);
  const { id } = await get(WebhookResends).start(holderOf(client), FAILED, { requestId: `\0${'r'.repeat(100)}` });
  const row = await usher.dataSource.manager.findOneByOrFail(WebhookResend, { id });
  expect(row.requestId).toBe(`?${'r'.repeat(63)}`);
});

describe('POST /webhooks/resend', () => {
  test('sends every FAILED notification of the client again, once for each order, and shows its progress', async () => {
    const [client, other] = [await usher.client(receiver.url), await usher.client(receiver.url)];
    const keys = references('missed', 120);
    const ids = await insertFailed(client, keys);
    await insertFailed(client, keys.slice(0, 5), 2);
    await insertFailed(other, references('of-another', 1));
    const delivered = await client.completedOrder();
    await usher.webhook(delivered, 'SUCCESS');
    await insertFailed(client, [delivered]);
    const { status, headers, body } = await client.call('POST', '/webhooks/resend', FAILED);
    expect([status, body]).toEqual([202, expect.objectContaining({ status: 'FAILED', selected: 126, resent: 0 })]);
    const { pathname } = new URL(String(headers.get('location')), usher.running.url);
    expect(pathname).toBe(`/webhook-resends/${String(body.id)}`);
    const ended = await finished(client.call.bind(client), body.id);
    expect(ended).toMatchObject({ id: body.id, selected: 126, resent: 120, refused: 6 });
    expect(await resendsOf(usher, client)).toEqual(new Map(ids.map((id) => [id, 1])));
    for (const key of keys) await usher.webhook(key, 'SUCCESS');
    const counts = { delivered: 120, failedAgain: 0, pending: 0, unknown: 0 };
    expect((await client.call('GET', pathname)).body).toMatchObject({ ...ended, ...counts });
    for (const key of [...keys, delivered]) expect(receiver.of(key)).toHaveLength(1);
    expect((await resendsOf(usher, other)).size).toBe(0);
  });

  test('takes those that failed in a time range, or of one order', async () => {
    const client = await usher.client(receiver.url);
    const [old] = await insertFailed(client, ['range-old'], 48);
    const [middle] = await insertFailed(client, ['range-middle'], 24);
    const [recent] = await insertFailed(client, ['range-recent'], 1);
    const at = (hoursAgo: number): string => new Date(Date.now() - hoursAgo * HOUR_MS).toISOString();
    const resent: unknown[] = [];
    for (const filter of [{ since: at(30), until: at(10) }, { referenceId: 'range-recent' }, { since: at(60) }]) {
      const { body } = await client.call('POST', '/webhooks/resend', { ...FAILED, ...filter });
      await finished(client.call.bind(client), body.id);
      resent.push([...(await resendsOf(usher, client)).keys()].sort());
    }
    expect(resent).toEqual([[middle], [middle, recent].sort(), [old, middle, recent].sort()]);
  });

  test('says why it refused, and how many it does not know because an earlier version handled them', async () => {
    const client = await usher.client(receiver.url);
    const delivered = await client.completedOrder();
    await usher.webhook(delivered, 'SUCCESS');
    await insertFailed(client, ['failed-later']);
    const held: (() => void)[] = [];
    receiver.behaviour = (response) => void held.push(() => response.writeHead(200).end());
    const pending = await client.completedOrder();
    await insertFailed(client, [delivered, pending, 'failed-later'], 30);
    const without = await usher.client();
    await insertFailed(without, ['no-url'], 30);
    const old = { ...FAILED, until: new Date(Date.now() - 10 * HOUR_MS).toISOString() };
    const views = await Promise.all(
      [client, without].map(async (one) => {
        const { body } = await one.call('POST', '/webhooks/resend', old);
        return finished(one.call.bind(one), body.id);
      }),
    );
    const none = { newer: 0, otherPending: 0, otherDelivered: 0, noNotifyUrl: 0 };
    expect(views).toMatchObject([
      { refused: 3, refusals: { ...none, newer: 1, otherPending: 1, otherDelivered: 1 }, unknown: 0 },
      { refused: 1, refusals: { ...none, noNotifyUrl: 1 }, unknown: 0 },
    ]);
    for (const release of held) release();
    const id = String(views[0]?.id);
    // What a process of 0.2 does has no row.
    await usher.dataSource.manager.delete(ResentWebhook, { resendId: id });
    expect((await client.call('GET', `/webhook-resends/${id}`)).body).toMatchObject({ refusals: none, unknown: 3 });
  });

  test('twice at the same moment resends each webhook once, and never one that fails afterwards', async () => {
    const client = await usher.client(receiver.url);
    receiver.behaviour = answer(500);
    const ids = await insertFailed(client, references('twice', 110));
    const requests = await Promise.all([1, 2].map(() => client.call('POST', '/webhooks/resend', FAILED)));
    const ended = await Promise.all(requests.map(({ body }) => finished(client.call.bind(client), body.id)));
    expect(ended.map(({ selected }) => selected)).toEqual([110, 110]);
    expect(ended.reduce((sum, { resent }) => sum + Number(resent), 0)).toBe(110);
    expect(await resendsOf(usher, client)).toEqual(new Map(ids.map((id) => [id, 1])));
  });

  test("with an owner's token takes and shows only what belongs to the owner", async () => {
    const client = await application(usher, {}, receiver.url);
    const owners = [await signedIn(usher), await signedIn(usher)] as const;
    const [one, other] = await Promise.all(owners.map(async ({ browser }) => (await ownerToken(client, browser)).call));
    const [own] = await insertFailed(client, ['owner-one'], 1, { ownerId: owners[0].owner.id });
    await insertFailed(client, ['owner-other'], 1, { ownerId: owners[1].owner.id });
    await insertFailed(client, ['owner-none']);
    const { body } = await one!('POST', '/webhooks/resend', FAILED);
    expect(await finished(one!, body.id)).toMatchObject({ selected: 1, resent: 1 });
    expect([...(await resendsOf(usher, client)).keys()]).toEqual([own]);
    const path = `/webhook-resends/${String(body.id)}`;
    const stranger = await usher.client(receiver.url);
    const seen = [await other!('GET', path), await stranger.call('GET', path), await client.call('GET', path)];
    expect(seen.map(({ status }) => status)).toEqual([404, 404, 200]);
  });

  test('waits while the client has as many pending notifications as its limit, and a retry run continues', async () => {
    const client = await usher.client(receiver.url);
    receiver.behaviour = (response) => void held.push(() => response.writeHead(200).end());
    const held: (() => void)[] = [];
    const keys = references('crowd', LIMIT + 20);
    await insertFailed(client, keys);
    const { body } = await client.call('POST', '/webhooks/resend', FAILED);
    const resent = await eventually('it waits', async () => {
      const view = (await client.call('GET', `/webhook-resends/${String(body.id)}`)).body;
      return Number(view.resent) >= LIMIT ? view : null;
    });
    expect(resent).toMatchObject({ state: 'RUNNING', resent: LIMIT });
    receiver.behaviour = answer(200);
    for (const release of held) release();
    expect(await finished(client.call.bind(client), body.id)).toMatchObject({ resent: keys.length, refused: 0 });
  });

  test('answers 429 to the eleventh in a minute', async () => {
    const client = await usher.client(receiver.url);
    const statuses: number[] = [];
    for (let nth = 1; nth <= 11; nth += 1)
      statuses.push((await client.call('POST', '/webhooks/resend', FAILED)).status);
    expect(statuses).toEqual([...Array<number>(10).fill(202), 429]);
  });

  test.each([
    ['status', {}],
    ['status', { status: 'PENDING' }],
    ['since', { ...FAILED, since: 'yesterday' }],
    ['until', { ...FAILED, since: '2026-01-02T00:00:00Z', until: '2026-01-01T00:00:00Z' }],
    ['since', { ...FAILED, since: '0000-01-01T00:00:00+23:59' }],
    ['until', { ...FAILED, until: '9999-12-31T23:59:59-01:00' }],
    ['referenceId', { ...FAILED, referenceId: 'a b' }],
    ['client', { ...FAILED, client: 'another' }],
  ])('answers 400 that names %s for %j', async (field, request) => {
    const client = await usher.client(receiver.url);
    const { status, body } = await client.call('POST', '/webhooks/resend', request);
    expect([status, body.errors]).toEqual([400, [{ pointer: `#/${field}`, message: expect.any(String) }]]);
  });
});

describe('a resend that is interrupted', () => {
  /** The same work, which ends after it has recorded so many webhooks, as by a crash. */
  function crashingAfter(count: number): ResendWork {
    const recorder = get(WebhookRecorder);
    let recorded = 0;
    const record: WebhookRecorder['record'] = async (manager, webhook) => {
      recorded += 1;
      if (recorded > count) throw new Error('crashed');
      return recorder.record(manager, webhook);
    };
    const options = usher.running.app.get(USHER_OPTIONS, { strict: false });
    return new ResendWork(usher.dataSource, { record } as WebhookRecorder, get(AuditLog), options);
  }

  test('counts only whole batches, and a retry run continues where it ended', async () => {
    const client = await usher.client(receiver.url);
    const ids = await insertFailed(client, references('crash', 130));
    const { manager } = usher.dataSource;
    const row = { ...(await rowFor(client)), selected: 130 };
    await manager.insert(WebhookResend, row);
    await expect(crashingAfter(70).run(row.id, () => false)).rejects.toThrow('crashed');
    // The worker of this process may already have gone on.
    const { resent } = (await client.call('GET', `/webhook-resends/${row.id}`)).body;
    expect([50, 100, 130]).toContain(resent);
    expect(await finished(client.call.bind(client), row.id)).toMatchObject({ resent: 130, refused: 0 });
    expect(await resendsOf(usher, client)).toEqual(new Map(ids.map((id) => [id, 1])));
  });

  /** A request that no job works on, as after the loss of the queue. */
  async function rowFor(client: TestClient): Promise<WebhookResend> {
    const resends = get(WebhookResends);
    const { id } = await resends.run(holderOf(client), { ...FAILED, referenceId: 'nothing' });
    const row = await usher.dataSource.manager.findOneByOrFail(WebhookResend, { id });
    return { ...row, id: `${row.id.slice(0, -4)}next`, referenceId: null, finishedAt: null };
  }
});

test('the command resends in its own process, of one client or of all, with an audit event for each webhook', async () => {
  const [one, other] = [await usher.client(receiver.url), await usher.client(receiver.url)];
  const [first] = await insertFailed(one, ['by-command-1']);
  await insertFailed(one, ['by-command-old'], 48);
  const [second] = await insertFailed(other, ['by-command-2']);
  const command = (...args: string[]) =>
    usherJson<Record<string, unknown>>(usher.settings, ['webhook', 'resend', '--status', 'FAILED', ...args]);
  expect(await command('--client', one.id, '--since', '24h')).toMatchObject({ state: 'FINISHED', resent: 1 });
  expect([...(await resendsOf(usher, one)).keys()]).toEqual([first]);
  await command('--since', '24h', '--reference', 'by-command-2');
  expect([...(await resendsOf(usher, other)).keys()]).toEqual([second]);
  await command();
  expect((await resendsOf(usher, one)).size).toBe(2);
  const [event] = await get(AuditLog).list({ subject: `webhook:${first}` });
  expect(event).toMatchObject({ action: 'webhook.resent', actor: expect.stringMatching(/^command-line:/) });
  expect(await usher.dataSource.manager.countBy(Webhook, { clientId: one.id, status: 'PENDING' })).toBeLessThan(3);
});
