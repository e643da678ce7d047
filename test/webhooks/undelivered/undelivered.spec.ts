import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { verifyNotification } from 'usher-receiver';
import { UndeliveredWebhooks } from '../../../src/webhooks/undelivered/undelivered-webhooks.js';
import { ClientSecret } from '../../../src/clients/client.entity.js';
import { SecretRotation } from '../../../src/clients/secrets/secret-rotation.js';
import { application, ownerToken, signedIn, startWithIssuer } from '../../auth/authorize/support.js';
import { usher as run } from '../../support/process.js';
import { answer, hang, TestReceiver } from '../../support/receiver.js';
import { statementsOf } from '../../support/statements.js';
import { ONE_ATTEMPT } from '../../support/usher.js';
import type { TestClient, TestUsher } from '../../support/usher.js';
import { insertFailed, references } from './support.js';

interface Line {
  headers: Record<string, string>;
  body: string;
}

interface Page {
  data: Line[];
  nextCursor: string | null;
  hasMore: boolean;
}

let usher: TestUsher;
let receiver: TestReceiver;
beforeAll(async () => {
  usher = await startWithIssuer(ONE_ATTEMPT);
  receiver = await TestReceiver.start();
});
afterAll(async () => {
  receiver.close();
  await usher.stop();
});

const linesOf = (text: unknown): Line[] =>
  String(text)
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Line);
const keyOf = ({ body }: Line): string => (JSON.parse(body) as { data: { key: string } }).data.key;
const ACCEPT = { accept: 'application/x-ndjson' };
async function read(call: TestClient['call'], query = ''): Promise<Line[]> {
  const { status, headers, body } = await call('GET', `/webhooks/undelivered${query}`, undefined, ACCEPT);
  expect([status, headers.get('content-type')]).toEqual([200, 'application/x-ndjson']);
  return linesOf(body.text);
}

describe('GET /webhooks/undelivered', () => {
  test('has what is pending and the last FAILED one of each order that was not delivered, the oldest first', async () => {
    const client = await usher.client(receiver.url);
    receiver.behaviour = hang;
    const pending = await client.completedOrder();
    await receiver.waitFor(pending);
    receiver.behaviour = answer(200);
    const delivered = await client.completedOrder();
    await usher.webhook(delivered, 'SUCCESS');
    await insertFailed(client, ['again', delivered, pending], 3);
    const [last] = await insertFailed(client, ['again'], 2);
    await insertFailed(client, ['purged'], 2, { purgedAt: Date.now(), body: '' });
    await insertFailed(await usher.client(receiver.url), ['of-another']);
    const lines = await read(client.call.bind(client));
    expect(lines.map(keyOf)).toEqual(['again', pending]);
    expect(lines[0]?.headers['X-Webhook-Id']).toBe(last);
  });

  test('has the exact bytes and new signatures, which the receiver kit verifies with each valid secret', async () => {
    const client = await usher.client(receiver.url);
    await insertFailed(client, ['signed']);
    const [id] = (await usher.webhooks.find('signed')).map((webhook) => webhook.id);
    const { secret: next } = await usher.running.app.get(SecretRotation, { strict: false }).rotate(client.id, 60_000);
    const [[line], [again]] = [await read(client.call.bind(client)), await read(client.call.bind(client))];
    for (const secret of [client.secret, next]) {
      const notification = verifyNotification({ rawBody: Buffer.from(line!.body), headers: line!.headers, secret });
      expect(notification).toEqual({ data: { key: 'signed', title: 'Amélie — 天使爱美丽' } });
    }
    expect(line!.headers).toMatchObject({ 'X-Webhook-Id': id, 'X-Webhook-Attempt': '1' });
    expect(again!.headers['X-Nonce-Str']).not.toBe(line!.headers['X-Nonce-Str']);
  });

  test('answers 409 that says what to do to a client without a valid secret', async () => {
    const client = await usher.client(receiver.url);
    await insertFailed(client, ['without-secret']);
    expect(await read(client.call.bind(client))).toHaveLength(1);
    await usher.dataSource.manager.delete(ClientSecret, { clientId: client.id });
    const { status, body } = await client.call('GET', '/webhooks/undelivered');
    expect([status, body.detail]).toEqual([409, expect.stringContaining(`usher client rotate-secret ${client.id}`)]);
  });

  test('changes nothing: what was read stays FAILED', async () => {
    const client = await usher.client(receiver.url);
    await insertFailed(client, ['unchanged']);
    const before = await usher.webhooks.find('unchanged');
    await read(client.call.bind(client));
    expect(await usher.webhooks.find('unchanged')).toEqual(before);
  });

  test('continues after the last line that a reader has, and ends after `limit` lines', async () => {
    const client = await usher.client(receiver.url);
    await insertFailed(client, references('page', 250));
    const all = await read(client.call.bind(client));
    expect(all).toHaveLength(250);
    const first = await read(client.call.bind(client), '?limit=120');
    const rest = await read(client.call.bind(client), `?cursor=${first.at(-1)?.headers['X-Webhook-Id']}`);
    expect([...first, ...rest].map(keyOf)).toEqual(all.map(keyOf));
    expect(new Set(all.map(keyOf)).size).toBe(250);
  });

  test('reads the more at once, the more were sent again', async () => {
    const client = await usher.client(receiver.url);
    await insertFailed(client, references('long-ago', 150), 4);
    await insertFailed(client, Array<string>(3_000).fill('sent-often'), 3);
    await insertFailed(client, references('later', 150), 2);
    const lines = await read(client.call.bind(client));
    const keys = lines.map(keyOf);
    expect([...keys].sort()).toEqual(
      [...references('long-ago', 150), 'sent-often', ...references('later', 150)].sort(),
    );
    const cursor = lines[149]!.headers['X-Webhook-Id'];
    const statements = await statementsOf(usher.dataSource, async () => {
      const { body } = await client.call('GET', `/webhooks/undelivered?cursor=${cursor}`);
      expect((body as unknown as Page).data.map(keyOf)).toEqual(keys.slice(150, 200));
    });
    expect(statements.length).toBeLessThan(20);
  });

  test('answers pages of JSON if no lines are asked for, with 50 entries by default', async () => {
    const client = await usher.client(receiver.url);
    await insertFailed(client, references('json', 100));
    const pages: Page[] = [];
    for (let query: string | null = ''; query !== null;) {
      const { headers, body } = await client.call('GET', `/webhooks/undelivered?${query}`);
      expect(headers.get('content-type')).toContain('application/json');
      const page = body as unknown as Page;
      pages.push(page);
      query = page.nextCursor && `cursor=${page.nextCursor}`;
    }
    expect(pages.map(({ data, hasMore }) => [data.length, hasMore])).toEqual([
      [50, true],
      [50, false],
    ]);
    const all = (await read(client.call.bind(client))).map(keyOf);
    expect(pages.flatMap(({ data }) => data.map(keyOf))).toEqual(all);
    const { body } = await client.call('GET', '/webhooks/undelivered?limit=60');
    expect((body.data as Line[]).map(keyOf)).toEqual(all.slice(0, 60));
  });

  test.each([
    ['Application/X-NDJSON', true],
    ['text/html, application/x-ndjson; q=0.5', true],
    ['application/x-ndjson;q=0', false],
    ['application/json, application/x-ndjson; q=0.000', false],
    ['application/x-ndjson-seq', false],
  ])('with Accept: %s answers lines: %s', async (accept, isLines) => {
    const client = await usher.client(receiver.url);
    const { headers } = await client.call('GET', '/webhooks/undelivered', undefined, { accept });
    expect(headers.get('content-type')).toMatch(isLines ? 'application/x-ndjson' : 'application/json');
  });

  test('reads no further than its reader, so that the memory does not hold a long list', async () => {
    const client = await usher.client(receiver.url);
    await insertFailed(client, references('long', 1_000), 1, { body: JSON.stringify({ data: 'x'.repeat(8_000) }) });
    const undelivered = usher.running.app.get(UndeliveredWebhooks, { strict: false });
    const { pages } = undelivered;
    let taken = 0;
    undelivered.pages = async function* (...of) {
      for await (const page of pages.apply(undelivered, of)) {
        taken += page.length;
        yield page;
      }
    };
    const { access_token: token } = (await client.token()).body;
    const headers = { authorization: `Bearer ${String(token)}`, ...ACCEPT };
    const response = await fetch(`${usher.running.url}/webhooks/undelivered`, { headers });
    const reader = response.body!.getReader();
    await reader.read();
    expect(taken).toBeLessThan(1_000);
    for (let isDone = false; !isDone;) isDone = (await reader.read()).done;
    expect(taken).toBe(1_000);
    undelivered.pages = pages;
  });

  test("with an owner's token has only what belongs to the owner", async () => {
    const client = await application(usher, {}, receiver.url);
    const { browser, owner } = await signedIn(usher);
    const { call } = await ownerToken(client, browser);
    await insertFailed(client, ['of-owner'], 1, { ownerId: owner.id });
    await insertFailed(client, ['of-client']);
    expect((await read(call)).map(keyOf)).toEqual(['of-owner']);
    expect((await read(client.call.bind(client))).map(keyOf).sort()).toEqual(['of-client', 'of-owner']);
  });

  test.each([
    ['cursor', 'cursor=nothing'],
    ['limit', 'limit=0'],
    ['limit', 'limit=101'],
    ['status', 'status=FAILED'],
  ])('answers 400 that names %s for ?%s', async (field, query) => {
    const client = await usher.client(receiver.url);
    const { status, headers, body } = await client.call('GET', `/webhooks/undelivered?${query}`);
    expect([status, headers.get('content-type')]).toEqual([400, expect.stringContaining('problem+json')]);
    expect(body.errors).toEqual([{ parameter: field, message: expect.any(String) }]);
  });
});

test('the command prints the same lines', async () => {
  const client = await usher.client(receiver.url);
  await insertFailed(client, references('command', 3));
  const { stdout } = await run(usher.settings, ['webhook', 'undelivered', '--client', client.id, '--limit', '2']);
  const lines = linesOf(stdout);
  expect(lines.map(keyOf).sort()).toEqual((await read(client.call.bind(client), '?limit=2')).map(keyOf).sort());
  for (const { body, headers } of lines)
    expect(verifyNotification({ rawBody: Buffer.from(body), headers, secret: client.secret })).toMatchObject({});
});
