import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { hidePrivateResponse } from '../../../src/webhooks/api/client-view.js';
import { diagnosisOf } from '../../../src/webhooks/transport/diagnosis.js';
import { Webhook, WebhookAttempt } from '../../../src/webhooks/webhook.entity.js';
import { answer, TestReceiver } from '../../support/receiver.js';
import { COMPLETION, ONE_ATTEMPT, type TestClient, TestUsher } from '../../support/usher.js';

let usher: TestUsher;
let receiver: TestReceiver;
let client: TestClient;
let other: TestClient;

beforeAll(async () => {
  usher = await TestUsher.start(ONE_ATTEMPT);
  receiver = await TestReceiver.start();
  client = await usher.client(receiver.url);
  other = await usher.client(receiver.url);
});
afterAll(async () => {
  await usher.stop();
  receiver.close();
});

interface Page {
  data: { id: string; referenceId: string; status: string }[];
  nextCursor: string | null;
  hasMore: boolean;
}

async function page(of: TestClient, query = ''): Promise<Page> {
  const { status, body } = await of.call('GET', `/webhooks${query}`);
  expect(status).toBe(200);
  return body as unknown as Page;
}

async function allPages(
  of: TestClient,
  limit: number,
  between: () => Promise<unknown> = () => Promise.resolve(),
): Promise<string[]> {
  const found: string[] = [];
  for (let cursor: string | null = ''; cursor !== null;) {
    const { data, nextCursor, hasMore } = await page(of, `?limit=${limit}${cursor && `&cursor=${cursor}`}`);
    found.push(...data.map(({ referenceId }) => referenceId));
    cursor = nextCursor;
    expect(hasMore).toBe(nextCursor !== null);
    await between();
  }
  return found;
}

describe('a client', () => {
  test('lists exactly its own webhooks, newest first, in pages that do not change when new ones arrive', async () => {
    const mine: string[] = [];
    for (let i = 0; i < 12; i += 1) {
      mine.unshift(await client.completedOrder());
      await other.completedOrder();
    }
    expect(await allPages(client, 5, () => client.completedOrder())).toEqual(mine);
  });

  test('sees its own 100 of 200 webhooks, and their ids cannot be guessed', async () => {
    const pair = [await usher.client(receiver.url), await usher.client(receiver.url)];
    const created = await Promise.all(
      pair.map((one) => Promise.all(Array.from({ length: 100 }, () => one.completedOrder()))),
    );
    for (const [index, one] of pair.entries()) {
      expect((await allPages(one, 30)).sort()).toEqual(created[index]?.sort());
    }
    const { data } = await page(pair[0]!, '?limit=100');
    // The letter of the environment, the time and random characters: 22 characters in all.
    expect(new Set(data.map(({ id }) => id.slice(9))).size).toBe(100);
    expect(data.every(({ id }) => /^s[A-Za-z0-9]{21}$/.test(id))).toBe(true);
  });

  test('can filter by status, reference and time', async () => {
    const key = await client.completedOrder();
    const webhook = await usher.webhook(key, 'SUCCESS');
    expect((await page(client, `?referenceId=${encodeURIComponent(key)}`)).data.map(({ id }) => id)).toEqual([
      webhook.id,
    ]);
    expect((await page(client, `?referenceId=${encodeURIComponent(key)}&status=FAILED`)).data).toEqual([]);
    const after = encodeURIComponent(webhook.createdAt);
    expect((await page(client, `?createdAfter=${after}`)).data.map(({ id }) => id)).toContain(webhook.id);
    expect((await page(client, `?createdBefore=${after}`)).data.map(({ id }) => id)).not.toContain(webhook.id);
    const lowerCase = after.toLowerCase();
    expect((await page(client, `?createdAfter=${lowerCase}`)).data.map(({ id }) => id)).toContain(webhook.id);
  });

  test.each([
    '?limit=0',
    '?limit=101',
    '?limit=x',
    '?status=DONE',
    '?cursor=x',
    '?createdAfter=yesterday',
    '?createdBefore=9999-12-31T23:59:59-01:00',
    '?referenceId=%00',
  ])('gets 400 that names the invalid part of %s', async (query) => {
    const { status, headers, body } = await client.call('GET', `/webhooks${query}`);
    expect(status).toBe(400);
    expect(headers.get('content-type')).toContain('application/problem+json');
    expect(body.errors).toMatchObject([{ parameter: query.slice(1).split('=')[0] }]);
  });

  test('who sends a former name of a parameter or field learns the present one', async () => {
    const named = 'reference: is not a known parameter; did you mean referenceId?';
    expect((await client.call('GET', '/webhooks?reference=x')).body).toMatchObject({ status: 400, detail: named });
    const { body } = await client.call('POST', '/webhooks/resend', { status: 'FAILED', reference: 'x' });
    expect(body).toMatchObject({ status: 400, detail: 'reference: is not a known field; did you mean referenceId?' });
  });

  test('reads why an attempt failed, and in the sandbox what a loopback receiver answered', async () => {
    receiver.behaviour = (response) => void response.writeHead(401).end('wrong signature');
    const key = await client.completedOrder();
    const { id } = await usher.webhook(key, 'FAILED');
    const { status, body } = await client.call('GET', `/webhooks/${id}`);
    expect(status).toBe(200);
    const attempt = {
      number: 1,
      responseStatus: 401,
      diagnosis: diagnosisOf('signature-refused'),
      address: '127.0.0.1',
      responseSnippet: 'wrong signature',
    };
    expect(body).toMatchObject({ id, referenceId: key, attemptCount: 1, attempts: [attempt], plan: null });
    expect(body).not.toHaveProperty('clientId');
    receiver.behaviour = answer(200);
  });

  test('does not read what a private address answered', async () => {
    const key = await client.completedOrder();
    const { id } = await usher.webhook(key, 'SUCCESS');
    const seen = { address: '10.1.2.3', responseSnippet: 'inner secret', error: 'the address 10.1.2.3 is not allowed' };
    await usher.dataSource.manager.update(WebhookAttempt, { webhookId: id }, seen);
    const { body } = await client.call('GET', `/webhooks/${id}`);
    const hidden = { address: null, responseSnippet: null, error: 'the address (private) is not allowed' };
    expect(body).toMatchObject({ attempts: [hidden] });
  });

  test('reads that an attempt of an ended webhook was cut off', async () => {
    const { id } = await usher.webhook(await client.completedOrder(), 'SUCCESS');
    await usher.dataSource.manager.update(WebhookAttempt, { webhookId: id }, { durationMs: null });
    const { body } = await client.call('GET', `/webhooks/${id}`);
    expect(body).toMatchObject({ attempts: [{ diagnosis: { code: 'interrupted' } }] });
  });

  test('reads when a pending webhook is tried again and when it fails', async () => {
    const key = await client.completedOrder();
    const { id } = await usher.webhook(key, 'SUCCESS');
    const due = '2126-01-01T00:00:00.000Z';
    const pending = { status: 'PENDING', attempts: 0, nextAttemptAt: Date.parse(due), finishedAt: null } as const;
    await usher.dataSource.manager.update(Webhook, { id }, pending);
    const { body } = await client.call('GET', `/webhooks/${id}`);
    expect(body).toMatchObject({ plan: { attempts: [{ number: 1, notBefore: due }], failedNotBefore: due } });
  });

  test('cannot tell another client’s webhook from one that does not exist', async () => {
    const { id } = await usher.webhook(await other.completedOrder(), 'SUCCESS');
    const unknown = id.slice(0, -5) + 'zzzzz';
    for (const [method, path] of [
      ['GET', ''],
      ['POST', '/resend'],
    ] as const) {
      const foreign = await client.call(method, `/webhooks/${id}${path}`);
      const missing = await client.call(method, `/webhooks/${unknown}${path}`);
      expect(foreign.status).toBe(404);
      expect(JSON.stringify(foreign.body).replaceAll(id, unknown)).toBe(JSON.stringify(missing.body));
    }
  });

  test.each(['%00', 'a%00b', '%F0%9F%8E%AC', 'x'.repeat(90)])('finds no webhook %s', async (id) => {
    expect((await client.call('GET', `/webhooks/${id}`)).status).toBe(404);
    expect((await client.call('POST', `/webhooks/${id}/resend`)).status).toBe(404);
  });

  test('can resend a FAILED webhook once, and no other webhook', async () => {
    receiver.behaviour = answer(500);
    const key = await client.order();
    await client.complete(key, COMPLETION);
    const failed = await usher.webhook(key, 'FAILED');
    receiver.behaviour = answer(200);
    const { status, body } = await client.call('POST', `/webhooks/${failed.id}/resend`);
    expect(status).toBe(201);
    expect(body).toMatchObject({ resendOf: failed.id, referenceId: key });
    const resent = await usher.webhook(key, 'SUCCESS');
    expect(resent.id).toBe(body.id);
    for (const id of [failed.id, resent.id]) {
      expect((await client.call('POST', `/webhooks/${id}/resend`)).status).toBe(409);
    }
  });
});

test.each([
  ['93.184.215.14', 'production', true],
  ['93.184.215.14', 'sandbox', true],
  ['127.0.0.1', 'sandbox', true],
  ['::1', 'sandbox', true],
  ['::ffff:127.0.0.1', 'sandbox', true],
  ['127.0.0.1', 'production', false],
  ['::1', 'production', false],
  ['10.0.0.1', 'sandbox', false],
  ['169.254.169.254', 'sandbox', false],
  ['fd00::1', 'sandbox', false],
  [null, 'sandbox', false],
] as const)('the answer of %s in %s is shown: %s', (address, environment, isShown) => {
  const attempt = { address, error: 'no', responseSnippet: 'text' };
  const hidden = { address: null, error: 'no', responseSnippet: null };
  expect(hidePrivateResponse(attempt, environment)).toEqual(isShown ? attempt : hidden);
});
