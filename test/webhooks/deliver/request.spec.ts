import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { signNotification } from 'usher-receiver';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { answer, type Arrival, TestReceiver } from '../../support/receiver.js';
import { COMPLETION, NEW_ORDER, type TestClient, TestUsher } from '../../support/usher.js';

let usher: TestUsher;
let receiver: TestReceiver;
let client: TestClient;

beforeAll(async () => {
  usher = await TestUsher.shared();
  receiver = await TestReceiver.start();
  client = await usher.client(receiver.url);
});
afterAll(() => void receiver.close());

const RFC_3339_UTC = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;
const FIELDS = [
  'key',
  'bookingId',
  'transactionId',
  'currencyCode',
  'totalAmount',
  'bookingAmount',
  'payableAmount',
  'status',
  'qrCode',
  'createdAt',
  'lastUpdatedAt',
];

const dataOf = ({ rawBody }: Arrival): Record<string, unknown> =>
  (JSON.parse(rawBody.toString('utf8')) as { data: Record<string, unknown> }).data;

/** The signature exactly as specification 6.2 describes it. */
function signatureOf({ rawBody, headers }: Arrival, secret: string): string {
  const message = `${String(headers['x-timestamp'])}${String(headers['x-nonce-str'])}${rawBody.toString('base64')}`;
  return createHmac('sha256', secret).update(message).digest('hex');
}

describe('the body of a notification', () => {
  test('has exactly the fields of specification 2.3, in the same order', async () => {
    const key = await client.completedOrder();
    const [arrival] = await receiver.waitFor(key);
    const body = JSON.parse(arrival!.rawBody.toString('utf8')) as Record<string, unknown>;
    expect(Object.keys(body)).toEqual(['eventType', 'data']);
    expect(body.eventType).toBe('NOTIFY_ORDER_COMPLETION');
    expect(Object.keys(dataOf(arrival!))).toEqual(FIELDS);
    expect(dataOf(arrival!)).toMatchObject({ key, ...NEW_ORDER, ...COMPLETION, status: 'COMPLETED' });
  });

  test('has no qrCode if the operator issued none', async () => {
    const key = await client.order();
    await client.complete(key, { bookingId: 'BK-1', transactionId: 'TX-1' });
    const [arrival] = await receiver.waitFor(key);
    expect(Object.keys(dataOf(arrival!))).toEqual(FIELDS.filter((field) => field !== 'qrCode'));
  });

  test('has whole-number amounts up to the largest, and times in RFC 3339 UTC', async () => {
    const key = await client.completedOrder({ totalAmount: Number.MAX_SAFE_INTEGER, bookingAmount: 0 });
    const [arrival] = await receiver.waitFor(key);
    const text = arrival!.rawBody.toString('utf8');
    expect(text).toContain('"totalAmount":9007199254740991,"bookingAmount":0,"payableAmount":4300,');
    const { createdAt, lastUpdatedAt } = dataOf(arrival!) as Record<string, string>;
    expect(createdAt).toMatch(RFC_3339_UTC);
    expect(lastUpdatedAt).toMatch(RFC_3339_UTC);
    expect(Date.parse(lastUpdatedAt!)).toBeGreaterThanOrEqual(Date.parse(createdAt!));
  });

  test('is signed over the exact bytes that are sent', async () => {
    const key = await client.order();
    await client.complete(key, { bookingId: 'Amélie — 天使爱美丽', transactionId: '🎬"\\', qrCode: '\u2028\n\u0001' });
    const [arrival] = await receiver.waitFor(key);
    expect(dataOf(arrival!)).toMatchObject({ bookingId: 'Amélie — 天使爱美丽', qrCode: '\u2028\n\u0001' });
    expect(arrival!.headers['x-signature']).toBe(signatureOf(arrival!, client.secret));
  });
});

describe('the headers of a notification', () => {
  test('are those of specification 4.3 and 6.2, and name the sender, the webhook and the attempt', async () => {
    const key = await client.completedOrder();
    const [{ headers, at }] = (await receiver.waitFor(key)) as [Arrival];
    const { id } = await usher.webhook(key, 'SUCCESS');
    const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      'x-timestamp': expect.stringMatching(/^\d{10}$/),
      'x-nonce-str': expect.stringMatching(/^[A-Za-z0-9]{32}$/),
      'x-signature': expect.stringMatching(/^[0-9a-f]{64}$/),
      'user-agent': `Usher/${version}`,
      'x-webhook-id': id,
      'x-webhook-attempt': '1',
    });
    expect(Number(headers['x-timestamp']) * 1_000).toBeLessThanOrEqual(at);
  });
});

describe('every attempt of one notification', () => {
  let arrivals: Arrival[];

  beforeAll(async () => {
    receiver.behaviour = (response, arrival, nth) => answer(nth < 3 ? 503 : 204)(response, arrival, nth);
    arrivals = await receiver.waitFor(await client.completedOrder(), 3);
  });

  test('sends the same bytes', () => {
    for (const { rawBody } of arrivals) expect(rawBody.equals(arrivals[0]!.rawBody)).toBe(true);
  });

  test('has its own nonce, timestamp and signature', () => {
    expect(new Set(arrivals.map(({ headers }) => headers['x-nonce-str'])).size).toBe(3);
    expect(new Set(arrivals.map(({ headers }) => headers['x-signature'])).size).toBe(3);
    const timestamps = arrivals.map(({ headers }) => Number(headers['x-timestamp']));
    expect(timestamps[2]).toBeGreaterThan(timestamps[0]!);
    for (const arrival of arrivals) expect(arrival.headers['x-signature']).toBe(signatureOf(arrival, client.secret));
  });

  test('has the same X-Webhook-Id and increments X-Webhook-Attempt', () => {
    expect(new Set(arrivals.map(({ headers }) => headers['x-webhook-id'])).size).toBe(1);
    expect(arrivals.map(({ headers }) => headers['x-webhook-attempt'])).toEqual(['1', '2', '3']);
  });
});

describe('the signature', () => {
  const body =
    '{"eventType":"NOTIFY_ORDER_COMPLETION","data":{"key":"TW92aWVPcmRlcjoxMjM0NTY=","status":"COMPLETED","totalAmount":4200,"title":"Amélie — 天使爱美丽"}}';

  test.each([
    [body, '52ffabb36d5e7257f7a6da26a20ce87676cdd25fcc61695cd3515fba9974cf9f'],
    ['{}', 'e5d3871cef64ad390e83c64d1b46379dbce8d49172fed3255e835b2b60531d79'],
  ])('matches the published test vector %#', (text, signature) => {
    const secret = '8Qm3vT1xKpZ0aYd7LrNf5sWc2BhEuJg9RtVx4MzQiXo';
    const made = signNotification(secret, '1767225600', 'aZ09bY18cX27dW36eV45fU54gT63hS72', Buffer.from(text));
    expect(made).toBe(signature);
  });
});
