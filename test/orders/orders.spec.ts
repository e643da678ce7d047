import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { NewOrder } from '../../src/orders/movie-order.js';
import { eventually } from '../support/eventually.js';
import { answer, TestReceiver } from '../support/receiver.js';
import { basic, COMPLETION, NEW_ORDER, type TestClient, TestUsher } from '../support/usher.js';

let usher: TestUsher;
let receiver: TestReceiver;
let client: TestClient;

beforeAll(async () => {
  usher = await TestUsher.start({ INTERNAL_USER: 'order-service', INTERNAL_PASSWORD: 'let me in' });
  receiver = await TestReceiver.start();
  client = await usher.client(receiver.url);
});
afterAll(async () => {
  await usher.stop();
  receiver.close();
});

const RFC_3339_UTC = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;
const create = (change: object) => client.call('POST', '/movie-orders', { ...NEW_ORDER, ...change });

/** List one of ISO 4217, of 2025. */
const ISO_4217 = `
  AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BHD BIF BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE
  CHF CHW CLF CLP CNY COP COU CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF
  GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR
  LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN
  PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS
  TMT TND TOP TRY TTD TWD TZS UAH UGX USD USN UYI UYU UYW UZS VED VES VND VUV WST XAD XAF XAG XAU XBA XBB XBC
  XBD XCD XCG XDR XOF XPD XPF XPT XSU XTS XUA XXX YER ZAR ZMW ZWG`;

describe('create-movie-order', () => {
  test('accepts every code of ISO 4217', () => {
    const accepted = (currencyCode: string) => NewOrder.safeParse({ ...NEW_ORDER, currencyCode }).success;
    expect(
      ISO_4217.trim()
        .split(/\s+/)
        .filter((code) => !accepted(code)),
    ).toEqual([]);
  });

  test('answers 201 with the PENDING order and its key', async () => {
    const { status, headers, body } = await create({});
    expect(status).toBe(201);
    expect(headers.get('content-type')).toMatch(/^application\/json/);
    expect(body).toEqual({
      key: expect.stringMatching(/^[A-Za-z0-9]+$/),
      status: 'PENDING',
      ...NEW_ORDER,
      createdAt: expect.stringMatching(RFC_3339_UTC),
      lastUpdatedAt: body.createdAt,
    });
    expect(Buffer.from(String(body.key), 'base64').toString('base64')).toBe(body.key);
  });

  test.each([
    ['totalAmount', { totalAmount: -1 }],
    ['totalAmount', { totalAmount: 42.5 }],
    ['totalAmount', { totalAmount: 2 ** 53 }],
    ['totalAmount', { totalAmount: '4200' }],
    ['totalAmount', { totalAmount: null }],
    ['bookingAmount', { bookingAmount: undefined }],
    ['payableAmount', { payableAmount: true }],
    ['currencyCode', { currencyCode: 'XYZ' }],
    ['currencyCode', { currencyCode: 'myr' }],
    ['currencyCode', { currencyCode: undefined }],
    ['notifyUrl', { notifyUrl: 'not a url' }],
    ['notifyUrl', { notifyUrl: 'ftp://example.com/notify' }],
    ['notifyUrl', { notifyUrl: 'https://user:password@example.com/notify' }],
    ['notifyUrl', { notifyUrl: 'https://example.com:22/notify' }],
    ['notifyUrl', { notifyUrl: 'http://169.254.169.254/latest' }],
    ['notifyUrl', { notifyUrl: `https://example.com/${'x'.repeat(2_048)}` }],
    ['notifyUrl', { notifyUrl: null }],
  ])('answers 400 that names %s for %j', async (field, change) => {
    const { status, headers, body } = await create(change);
    expect(status).toBe(400);
    expect(headers.get('content-type')).toMatch(/^application\/problem\+json/);
    expect(body).toMatchObject({ status: 400, detail: expect.stringContaining(field) });
    expect(body.errors).toEqual([{ pointer: `#/${field}`, message: expect.any(String) }]);
  });

  test('names every invalid field', async () => {
    const { body } = await client.call('POST', '/movie-orders', {});
    expect((body.errors as { pointer: string }[]).map(({ pointer }) => pointer)).toEqual(
      Object.keys(NEW_ORDER).map((name) => `#/${name}`),
    );
  });

  test.each(['{', '[]', '"text"', 'null', ''])('answers 400 for the body %j', async (text) => {
    const { access_token: token } = (await client.token()).body;
    const headers = { authorization: `Bearer ${String(token)}`, 'content-type': 'application/json' };
    const { status, headers: answered } = await usher.request('POST', '/movie-orders', headers, text);
    expect(status).toBe(400);
    expect(answered.get('content-type')).toMatch(/^application\/problem\+json/);
  });

  test('answers 422 if neither the order nor the client has a Notify URL', async () => {
    const { status, body } = await (await usher.client()).call('POST', '/movie-orders', NEW_ORDER);
    expect(status).toBe(422);
    expect(body.detail).toContain('notifyUrl');
  });
});

describe('an order', () => {
  test('is returned to its client', async () => {
    const key = await client.order();
    const completed = await client.complete(key);
    expect(completed.body).toMatchObject({ key, status: 'COMPLETED', ...NEW_ORDER, ...COMPLETION });
    const { status, body } = await client.call('GET', `/movie-orders/${key}`);
    expect({ status, body }).toEqual({ status: 200, body: completed.body });
  });

  test('of another client is not found, as an unknown order, and cannot be completed', async () => {
    const key = await client.order();
    const stranger = await usher.client(receiver.url);
    const unknown = await stranger.call('GET', `/movie-orders/${key.slice(0, -4)}AAAA`);
    const another = await stranger.call('GET', `/movie-orders/${key}`);
    expect([unknown.status, another.status]).toEqual([404, 404]);
    expect((await stranger.complete(key)).status).toBe(404);
    expect((await client.call('GET', `/movie-orders/${key}`)).body.status).toBe('PENDING');
  });

  test.each([
    ['bookingId', { bookingId: 'BK-2' }],
    ['transactionId', { transactionId: 'TX-2' }],
    ['qrCode', { qrCode: 'QR-2' }],
    ['qrCode', { qrCode: undefined }],
  ])('that is completed is not completed again with another %s: 409', async (_, change) => {
    const key = await client.completedOrder();
    expect((await client.complete(key, { ...COMPLETION, ...change })).status).toBe(409);
    expect((await client.complete(key)).status).toBe(200);
    expect((await client.call('GET', `/movie-orders/${key}`)).body).toMatchObject(COMPLETION);
  });

  test.each(['garbage', '%00', '%F0%9F%8E%AC', 'TW92aWVPcmRlcjo', 'x'.repeat(90)])(
    'with the key %s does not exist',
    async (key) => {
      expect((await client.call('GET', `/movie-orders/${key}`)).status).toBe(404);
      expect((await client.complete(key)).status).toBe(404);
    },
  );

  test('cannot be created, read or completed without a token', async () => {
    const key = await client.order();
    const paths = [
      ['POST', '/movie-orders'],
      ['GET', `/movie-orders/${key}`],
      ['POST', `/sandbox/movie-orders/${key}/complete`],
    ] as const;
    for (const [method, path] of paths) {
      const { status, headers } = await usher.request(method, path, {}, method === 'POST' ? {} : undefined);
      expect(status).toBe(401);
      expect(headers.get('www-authenticate')).toMatch(/^Bearer /);
    }
  });

  test.each([
    ['bookingId', { bookingId: '' }],
    ['bookingId', { bookingId: 7 }],
    ['bookingId', { bookingId: 'a\u0000b' }],
    ['transactionId', { transactionId: 'x'.repeat(256) }],
    ['transactionId', { transactionId: '\ud83c' }],
    ['qrCode', { qrCode: '' }],
  ])('is not completed with a bad %s: 400', async (field, change) => {
    const key = await client.order();
    const { status, body } = await client.complete(key, { ...COMPLETION, ...change });
    expect(status).toBe(400);
    expect(body.errors).toMatchObject([{ pointer: `#/${field}` }]);
    expect(await usher.webhooks.find(key)).toEqual([]);
  });
});

test.each([
  ['POST', '/movie-orders'],
  ['GET', '/movie-orders/KEY'],
  ['POST', '/sandbox/movie-orders/KEY/complete'],
  ['GET', '/webhooks/ID'],
  ['POST', '/webhooks/ID/resend'],
  ['POST', '/webhooks/test'],
])('%s %s refuses a query parameter by name', async (method, path) => {
  const { status, body } = await client.call(method, `${path}?verbose=1`, method === 'POST' ? {} : undefined);
  expect(status).toBe(400);
  expect(body.errors).toEqual([{ parameter: 'verbose', message: 'is not known; this route takes no query' }]);
});

test('a body that is not valid UTF-8 gets 400 and completes nothing', async () => {
  const key = await client.order();
  const response = await fetch(`${usher.running.url}/internal/movie-orders/${key}/complete`, {
    method: 'POST',
    headers: { authorization: basic('order-service', 'let me in'), 'content-type': 'application/json' },
    body: Buffer.from(JSON.stringify({ ...COMPLETION, bookingId: 'Café' }), 'latin1'),
  });
  expect({ status: response.status, body: await response.json() }).toMatchObject({
    status: 400,
    body: { detail: 'the body is not UTF-8' },
  });
  expect((await client.call('GET', `/movie-orders/${key}`)).body.status).toBe('PENDING');
});

describe('the internal route', () => {
  const complete = (key: string, authorization?: string) =>
    usher.request(
      'POST',
      `/internal/movie-orders/${key}/complete`,
      { ...(authorization && { authorization }) },
      COMPLETION,
    );

  test('completes the order of any client with the internal credentials', async () => {
    const key = await client.order();
    const { status, body } = await complete(key, basic('order-service', 'let me in'));
    expect(status).toBe(200);
    expect(body).toMatchObject({ key, status: 'COMPLETED' });
    await usher.webhook(key, 'SUCCESS');
  });

  test('refuses all other credentials', async () => {
    const key = await client.order();
    const wrong = [undefined, basic('order-service', 'wrong'), basic('ops', 'ops'), client.basic, 'Bearer let me in'];
    for (const authorization of wrong) {
      const { status, headers } = await complete(key, authorization);
      expect(status).toBe(401);
      expect(headers.get('www-authenticate')).toMatch(/^Basic /);
    }
    expect((await client.call('GET', `/movie-orders/${key}`)).body.status).toBe('PENDING');
  });
});

test('the pending notification of a disabled client is still sent', async () => {
  receiver.behaviour = (response, arrival, nth) => answer(nth === 1 ? 500 : 200)(response, arrival, nth);
  const leaving = await usher.client(receiver.url);
  const key = await leaving.completedOrder();
  await receiver.waitFor(key);
  await usher.clients.setDisabled(leaving.id, true);
  expect((await usher.webhook(key, 'SUCCESS')).attemptCount).toBe(2);
  await eventually(
    'its token is refused',
    async () => (await leaving.call('GET', `/movie-orders/${key}`)).status === 401,
  );
});
