import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { shownAmount } from '../../src/orders/movie-order.js';
import { TestReceiver } from '../support/receiver.js';
import { TestUsher } from '../support/usher.js';

let usher: TestUsher;
let receiver: TestReceiver;
beforeAll(async () => {
  usher = await TestUsher.shared();
  receiver = await TestReceiver.start();
});
afterAll(() => void receiver.close());

test.each([
  ['a currency without cents', { currencyCode: 'JPY', totalAmount: 1900, bookingAmount: 100, payableAmount: 2000 }],
  [
    'a currency with three decimals',
    { currencyCode: 'KWD', totalAmount: 4200, bookingAmount: 250, payableAmount: 4450 },
  ],
  ['a free order', { currencyCode: 'MYR', totalAmount: 0, bookingAmount: 0, payableAmount: 0 }],
  [
    'a voucher: less to pay than the total',
    { currencyCode: 'MYR', totalAmount: 4200, bookingAmount: 200, payableAmount: 0 },
  ],
  ['a fee above the total', { currencyCode: 'MYR', totalAmount: 100, bookingAmount: 200, payableAmount: 300 }],
  [
    'the largest amount',
    {
      currencyCode: 'VND',
      totalAmount: Number.MAX_SAFE_INTEGER,
      bookingAmount: 0,
      payableAmount: Number.MAX_SAFE_INTEGER,
    },
  ],
])('amounts are stored and notified as they were sent: %s', async (_, amounts) => {
  const client = await usher.client(receiver.url);
  const key = await client.completedOrder(amounts);
  expect((await client.call('GET', `/movie-orders/${key}`)).body).toMatchObject(amounts);
  const [arrival] = await receiver.waitFor(key);
  expect(JSON.parse(arrival!.rawBody.toString())).toMatchObject({ data: amounts });
});

test.each([
  [4200, 'MYR', '42.00'],
  [5, 'MYR', '0.05'],
  [2000, 'JPY', '2000'],
  [4450, 'KWD', '4.450'],
  [12345, 'CLF', '1.2345'],
  [123456789012345678901n, 'IDR', '1234567890123456789.01'],
])('people read %s %s as %s', (amount, currencyCode, shown) => {
  expect(shownAmount(amount, currencyCode)).toBe(shown);
});

test.each([[-1], [0.5], ['4200'], [Number.MAX_SAFE_INTEGER + 1]])('an amount of %j is refused', async (amount) => {
  const order = { currencyCode: 'JPY', totalAmount: amount, bookingAmount: 0, payableAmount: 0 };
  const { status, body } = await (await usher.client(receiver.url)).call('POST', '/movie-orders', order);
  expect([status, body.errors]).toEqual([400, [{ pointer: '#/totalAmount', message: expect.any(String) }]]);
});
