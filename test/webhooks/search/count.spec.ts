import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { DeliveryPauses } from '../../../src/webhooks/delivery-pauses.js';
import { ANY_WEBHOOK, type WebhookCriteria } from '../../../src/webhooks/search/webhook-criteria.js';
import { WebhookSearch } from '../../../src/webhooks/search/webhook-search.js';
import { Webhook, WebhookAttempt } from '../../../src/webhooks/webhook.entity.js';
import { type TestClient, TestUsher } from '../../support/usher.js';
import { HOUR_MS, insertFailed } from '../undelivered/support.js';

const LATER = Date.now() + 24 * HOUR_MS;
const STATUSES = {
  FAILED: {},
  SUCCESS: { status: 'SUCCESS' },
  PENDING: { status: 'PENDING', finishedAt: null, nextAttemptAt: LATER },
} as const;
const HOSTS = ['one.example', 'two.example'];
const EACH = 3;

let usher: TestUsher;
let clients: TestClient[];
let search: WebhookSearch;
beforeAll(async () => {
  usher = await TestUsher.start({ WEBHOOK_RETRY_EVERY: '24h' });
  search = usher.running.app.get(WebhookSearch, { strict: false });
  clients = [await usher.client(), await usher.client()];
  for (const client of clients)
    for (const [status, columns] of Object.entries(STATUSES))
      for (const host of HOSTS) {
        const name = `${status} ${host} ${client.id}`.replaceAll(' ', '-');
        const more = { ...columns, notifyUrl: `https://${host}/notify` };
        const failed = await insertFailed(
          client,
          [1, 2, 3].map((n) => `${name}-${n}`),
          2,
          more,
        );
        await usher.dataSource.manager.insert(
          WebhookAttempt,
          failed.map((webhookId) => ({
            webhookId,
            number: 1,
            startedAt: 1,
            durationMs: 5,
            diagnosis: 'gone' as const,
          })),
        );
        // A newer webhook of the first one's order.
        if (status === 'FAILED') await insertFailed(client, [`${name}-1`], 1, more);
      }
});
afterAll(() => usher.stop());

/** The criteria with each of these values in turn. */
const withEach = (all: WebhookCriteria[], values: Partial<WebhookCriteria>[]): WebhookCriteria[] =>
  all.flatMap((criteria) => values.map((more) => ({ ...criteria, ...more })));

test('as many are counted as are listed, of as many clients, for any criteria', async () => {
  const [first = ''] = clients.map(({ id }) => id);
  const hourAgo = Date.now() - 1.5 * HOUR_MS;
  const choices: Partial<WebhookCriteria>[][] = [
    [{}, { status: 'FAILED' }, { status: 'SUCCESS' }, { status: 'PENDING' }],
    [{}, { clientId: first }],
    [{}, { host: 'two.example' }],
    [{}, { reason: 'gone' }],
    [{}, { isSentAgain: true }, { isSentAgain: false }],
    [
      {},
      { since: hourAgo },
      { until: hourAgo },
      { endedSince: hourAgo },
      { referenceId: `FAILED-one.example-${first}-1` },
    ],
  ];
  let matching = 0;
  for (const criteria of choices.reduce(withEach, [ANY_WEBHOOK])) {
    const { ids } = await search.find(criteria, null, 1_000);
    const rows = await Promise.all(ids.map((id) => usher.dataSource.manager.findOneByOrFail(Webhook, { id })));
    const { count, clients: counted, isMore } = await search.count(criteria);
    expect({ criteria, count, isMore }).toEqual({ criteria, count: ids.length, isMore: false });
    // An index alone tells nothing about clients.
    if (counted > 0) expect(counted).toBe(new Set(rows.map(({ clientId }) => clientId)).size);
    matching += Math.sign(ids.length);
  }
  expect(matching).toBeGreaterThan(100);
  expect(await search.count({ ...ANY_WEBHOOK, status: 'FAILED', isSentAgain: false })).toEqual({
    count: clients.length * HOSTS.length * EACH,
    clients: 2,
    isMore: false,
  });
});

test('a host is found in each spelling that a Notify URL can have', async () => {
  const client = await usher.client('https://Bücher.example/notify');
  const spelled = ['https://Bücher.example:8443/notify', 'https://xn--bcher-kva.example:8443/notify'];
  for (const notifyUrl of spelled) await insertFailed(client, [notifyUrl], 1, { notifyUrl });
  await insertFailed(client, ['purged'], 1, { notifyUrl: '' });
  const countAt = async (host: string) => (await search.count({ ...ANY_WEBHOOK, clientId: client.id, host })).count;
  expect(await countAt('xn--bcher-kva.example:8443')).toBe(2);
  expect(await countAt('xn--bcher-kva.example')).toBe(0);
  // It looks encoded, but no name is encoded so.
  expect(await countAt('xn--zz')).toBe(0);
  const pauses = usher.running.app.get(DeliveryPauses, { strict: false });
  expect((await pauses.clientsAt('xn--bcher-kva.example')).map(({ id }) => id)).toEqual([client.id]);
});
