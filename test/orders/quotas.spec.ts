import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { DataSource } from 'typeorm';
import { PendingLimit } from '../../src/webhooks/pending-limit.js';
import { UsherOptionsError } from '../../src/resolve-options.js';
import { type Running, serve } from '../../src/server/serve.js';
import { loadConfig } from '../../src/server/settings/settings.js';
import { UsherModule } from '../../src/usher.module.js';
import { Webhook } from '../../src/webhooks/webhook.entity.js';
import { BACKEND } from '../support/backend.js';
import { eventually } from '../support/eventually.js';
import { statementsFromNowOn } from '../support/statements.js';
import { type Answer, NEW_ORDER, type TestClient, TestUsher } from '../support/usher.js';

const LIMIT = 3;
const NOTIFY_URL = 'https://partner.example/notify';

let usher: TestUsher;
let dataSource: DataSource;
beforeAll(async () => {
  // Without a worker every webhook stays PENDING.
  const limits = { ORDER_RATE_LIMIT: '40/h', WEBHOOK_PENDING_LIMIT: String(LIMIT) };
  usher = await TestUsher.start({ USHER_ROLE: 'api', ...limits });
  dataSource = usher.dataSource;
});
afterAll(() => usher.stop());

const create = (client: TestClient): Promise<Answer> => client.call('POST', '/movie-orders', NEW_ORDER);

function expectTooMany({ status, headers, body }: Answer, detail: RegExp): void {
  expect([status, body.title]).toEqual([429, 'Too Many Requests']);
  expect(body.detail).toMatch(detail);
  expect(Number(headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
}

const isRefused = ({ id }: TestClient): Promise<boolean> =>
  usher.running.app
    .get(PendingLimit, { strict: false })
    .check(id)
    .then(
      () => false,
      () => true,
    );

/** Waits until this process sees what was just recorded, because it trusts a count for one second. */
async function refused(client: TestClient): Promise<Answer> {
  await eventually('new orders are refused', () => isRefused(client));
  return create(client);
}

async function withPending(): Promise<{ client: TestClient; open: string }> {
  const client = await usher.client(NOTIFY_URL);
  const open = await client.order();
  for (let n = 0; n < LIMIT; n += 1)
    await usher.webhooks.notify({ referenceId: `${client.id}-${n}`, clientId: client.id, data: {} });
  return { client, open };
}

describe('the rate of new orders', () => {
  test('above it a client gets 429 with Retry-After, and other clients are not affected', async () => {
    const [client, other] = [await usher.client(NOTIFY_URL), await usher.client(NOTIFY_URL)];
    const answers = await Promise.all(Array.from({ length: 45 }, () => create(client)));
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(40);
    for (const answer of answers.filter(({ status }) => status !== 201))
      expectTooMany(answer, /^too many new orders; create them more slowly$/);
    expect((await create(other)).status).toBe(201);
  });

  test('a refused client can still read and complete its orders', async () => {
    const client = await usher.client(NOTIFY_URL);
    const [key] = await Promise.all(Array.from({ length: 40 }, () => client.order()));
    expect((await create(client)).status).toBe(429);
    expect((await client.call('GET', `/movie-orders/${key}`)).status).toBe(200);
    expect((await client.complete(key!)).status).toBe(200);
  });
});

describe('a client with too many pending webhooks', () => {
  test('gets no new order, resend or test, and is told what to do', async () => {
    const { client } = await withPending();
    const { webhook } = await usher.webhooks.notify({ referenceId: client.id, clientId: client.id, data: {} });
    await dataSource.manager.update(Webhook, { id: webhook.id }, { status: 'FAILED', liveKey: null });
    const told = /^3 notifications of this client are pending, .*make sure that your receivers answer 2xx/;
    expectTooMany(await refused(client), told);
    expectTooMany(await client.call('POST', `/webhooks/${webhook.id}/resend`), told);
    expectTooMany(await client.call('POST', '/webhooks/test'), told);
    expect((await create(await usher.client(NOTIFY_URL))).status).toBe(201);
  });

  test('can complete its orders, and an application can notify it', async () => {
    const { client, open } = await withPending();
    await refused(client);
    expect((await client.complete(open)).status).toBe(200);
    expect(await usher.webhooks.find(open)).toMatchObject([{ status: 'PENDING' }]);
    const { isNew } = await usher.webhooks.notify({ referenceId: `${client.id}-x`, clientId: client.id, data: {} });
    expect(isNew).toBe(true);
  });

  test('an operator can still resend its FAILED webhooks', async () => {
    const { client } = await withPending();
    const { webhook } = await usher.webhooks.notify({ referenceId: client.id, clientId: client.id, data: {} });
    await dataSource.manager.update(Webhook, { id: webhook.id }, { status: 'FAILED', liveKey: null });
    await refused(client);
    expect(await usher.webhooks.resend(webhook.id)).toMatchObject({ status: 'PENDING', resendOf: webhook.id });
  });

  test('can create orders again as soon as some are delivered', async () => {
    const { client } = await withPending();
    await refused(client);
    await dataSource.manager.update(Webhook, { clientId: client.id }, { status: 'SUCCESS' });
    await eventually('new orders are accepted', async () => !(await isRefused(client)));
    expect((await create(client)).status).toBe(201);
  });
});

test('the count is read once a second at most, by an index, and not beyond the limit', async () => {
  const startedAt = performance.now();
  const statements = statementsFromNowOn(dataSource);
  const { client } = await withPending();
  await Promise.all(Array.from({ length: 20 }, () => create(client)));
  const seconds = Math.ceil((performance.now() - startedAt) / 1_000);
  const counts = statements.filter((sql) => sql.includes('AS counted'));
  expect(counts.length).toBeGreaterThanOrEqual(1);
  expect(counts.length).toBeLessThanOrEqual(seconds);
  expect(counts.at(-1)).toMatch(/LIMIT 3\)/);
});

test('both limits can be switched off', async () => {
  const settings = { ORDER_RATE_LIMIT: 'off', WEBHOOK_PENDING_LIMIT: 'off' };
  expect(loadConfig(settings)).toMatchObject({ orderRateLimit: null, pendingWebhookLimit: null });
  const defaults = { orderRateLimit: { count: 600, seconds: 60 }, pendingWebhookLimit: 10_000 };
  expect(loadConfig({})).toMatchObject(defaults);
  for (const [name, value] of Object.entries({ ORDER_RATE_LIMIT: '600', WEBHOOK_PENDING_LIMIT: '0' }))
    expect(() => loadConfig({ [name]: value })).toThrow(`${name}=${value} is invalid`);
  const options = { environment: 'sandbox', database: { url: 'embedded:./x' } } as const;
  expect(() => UsherModule.forRoot({ ...options, limits: { orders: 'many', pendingWebhooks: 0 } })).toThrow(
    UsherOptionsError,
  );
});

/** An embedded database has only one process. */
if (BACKEND !== 'embedded')
  test('two processes count the same webhooks', async () => {
    const { client } = await withPending();
    const second: Running = await serve(loadConfig({ PORT: '0', LOG_LEVEL: 'silent', ...usher.settings }));
    const { body } = await client.token();
    const { status } = await fetch(`${second.url}/movie-orders`, {
      method: 'POST',
      headers: { authorization: `Bearer ${String(body.access_token)}`, 'content-type': 'application/json' },
      body: JSON.stringify(NEW_ORDER),
    });
    expect(status).toBe(429);
    await second.app.close();
  });
