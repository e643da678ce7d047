import { beforeEach, expect, test } from '@jest/globals';
import { FailureWindow } from '../../../src/webhooks/deliver/delivery-events.js';

const MINUTE = 60_000;

let now = 0;
let window: FailureWindow;
beforeEach(() => {
  now = 0;
  window = new FailureWindow(() => now);
});

const fail = (client: string, times: number): void => {
  for (let i = 0; i < times; i += 1) window.count(client);
};

test('the clients with the most failures come first, and only as many as asked for', () => {
  fail('few', 1);
  fail('many', 3);
  now += MINUTE;
  fail('some', 2);
  fail('many', 1);
  expect(window.top(2)).toEqual([
    ['many', 4],
    ['some', 2],
  ]);
});

test('failures are forgotten after 15 minutes', () => {
  fail('client', 2);
  now += 14 * MINUTE;
  fail('client', 1);
  expect(window.top(1)).toEqual([['client', 3]]);
  now += MINUTE;
  expect(window.top(1)).toEqual([['client', 1]]);
  now += 15 * MINUTE;
  expect(window.top(1)).toEqual([]);
});

test('at most 1,000 clients a minute are counted, and counting continues for these', () => {
  for (let i = 0; i < 5_000; i += 1) fail(`client-${i}`, 1);
  fail('client-0', 1);
  expect(window.top(10_000)).toHaveLength(1_000);
  expect(window.top(1)).toEqual([['client-0', 2]]);
});
