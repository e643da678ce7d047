import { createHash } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { exactJson } from '../../../src/http/exchange.js';
import { OrderTotals } from '../../../src/orders/list/order-totals.js';
import { application, ownerToken, signedIn, startWithIssuer } from '../../auth/authorize/support.js';
import { TestReceiver } from '../../support/receiver.js';
import { COMPLETION, NEW_ORDER, type TestUsher } from '../../support/usher.js';
import { insertOrders } from './support.js';

const DAY_MS = 86_400_000;
const TODAY = Math.floor(Date.now() / DAY_MS) * DAY_MS;
const YESTERDAY = TODAY - DAY_MS;

let usher: TestUsher;
let receiver: TestReceiver;
beforeAll(async () => {
  usher = await startWithIssuer();
  receiver = await TestReceiver.start();
});
afterAll(async () => {
  await usher.stop();
  receiver.close();
});

const dateOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10);
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
/** Computed without the code under test: the keys sorted by their bytes, joined by line feeds. */
const digest = (keys: string[]): string =>
  sha256(
    keys
      .map((key) => Buffer.from(key, 'ascii'))
      .sort((one, other) => Buffer.compare(one, other))
      .map(String)
      .reduce((text, key) => `${text}\n${key}`),
  );

test('the totals of a day count its completed orders by currency, from its first millisecond to its last, over pages', async () => {
  const client = await usher.client(receiver.url);
  const day = Array.from({ length: 5_003 }, (_, at) => YESTERDAY + Math.floor(at / 50));
  const inMyr = await insertOrders(usher, client, [...day, TODAY - 1]);
  const inEur = await insertOrders(usher, client, [YESTERDAY], { currencyCode: 'EUR', payableAmount: 7 });
  await insertOrders(usher, client, [YESTERDAY - 1, TODAY]);
  await insertOrders(usher, client, [YESTERDAY], { status: 'PENDING' });
  await insertOrders(usher, await usher.client(receiver.url), [YESTERDAY]);
  const { status, body, headers } = await client.call('GET', `/movie-orders/totals?day=${dateOf(YESTERDAY)}`);
  expect([status, headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8']);
  expect(body).toEqual({
    day: dateOf(YESTERDAY),
    currencies: [
      { currencyCode: 'EUR', count: 1, payableAmount: 7, keysDigest: digest(inEur) },
      { currencyCode: 'MYR', count: 5_004, payableAmount: 5_004 * NEW_ORDER.payableAmount, keysDigest: digest(inMyr) },
    ],
  });
});

test('the totals have every digit of a sum that no JavaScript number holds', async () => {
  const client = await usher.client(receiver.url);
  const payableAmount = Number.MAX_SAFE_INTEGER;
  await insertOrders(usher, client, [YESTERDAY, YESTERDAY, YESTERDAY], { payableAmount });
  const totals = usher.running.app.get(OrderTotals, { strict: false });
  const found = await totals.of({ clientId: client.id, ownerId: null }, { day: dateOf(YESTERDAY) });
  expect(found.currencies[0]?.payableAmount).toBe(27021597764222973n);
  expect(exactJson(found)).toContain('"payableAmount":27021597764222973,');
});

test("the totals for an owner's token have only the owner's orders, and those of a day without orders no currency", async () => {
  const client = await application(usher, {}, receiver.url);
  const { call } = await ownerToken(client, (await signedIn(usher)).browser);
  const { body: order } = await call('POST', '/movie-orders', NEW_ORDER);
  const { body: completed } = await call('POST', `/sandbox/movie-orders/${String(order.key)}/complete`, COMPLETION);
  const own = await client.completedOrder();
  const day = String(completed.lastUpdatedAt).slice(0, 10);
  const digests = async (of: typeof call): Promise<unknown> =>
    ((await of('GET', `/movie-orders/totals?day=${day}`)).body.currencies as { keysDigest: string }[])[0]?.keysDigest;
  expect(await digests(call)).toBe(digest([String(order.key)]));
  expect(await digests(client.call.bind(client))).toBe(digest([String(order.key), own]));
  const { body } = await call('GET', `/movie-orders/totals?day=${dateOf(TODAY - 5 * DAY_MS)}`);
  expect(body).toEqual({ day: dateOf(TODAY - 5 * DAY_MS), currencies: [] });
});

test.each([
  ['day', '', 'must be a date'],
  ['day', '?day=yesterday', 'must be a date'],
  ['day', '?day=2026-02-30', 'must be a date'],
  ['day', `?day=${dateOf(TODAY + 2 * DAY_MS)}`, 'has not begun yet in UTC'],
  ['day', `?day=${dateOf(TODAY - 91 * DAY_MS)}`, `use a day from ${dateOf(TODAY - 89 * DAY_MS)} on`],
  ['zone', `?day=${dateOf(TODAY)}&zone=8`, 'is not a known parameter'],
])('400 names %s in "%s"', async (field, query, message) => {
  const client = await usher.client(receiver.url);
  const { status, body } = await client.call('GET', `/movie-orders/totals${query}`);
  expect([status, body.errors]).toEqual([400, [{ parameter: field, message: expect.stringContaining(message) }]]);
});
