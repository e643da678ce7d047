import { afterEach, describe, expect, test } from '@jest/globals';
import { retryAfterMs } from '../../../src/webhooks/transport/outcome.js';
import { notification, Receivers } from './receivers.js';

const NOW = Date.parse('2026-01-01T12:00:00Z');
const DAY_MS = 86_400_000;

test.each([
  ['seconds', { 'retry-after': '120' }, 120_000],
  ['no time', { 'retry-after': '0' }, 0],
  ['more than a day', { 'retry-after': '9'.repeat(400) }, DAY_MS],
  ['an HTTP date', { 'retry-after': 'Thu, 01 Jan 2026 12:02:30 GMT' }, 150_000],
  ['a date in the form of RFC 850', { 'retry-after': 'Thursday, 01-Jan-26 12:02:30 GMT' }, 150_000],
  ['a date in the past', { 'retry-after': 'Thu, 01 Jan 2026 11:00:00 GMT' }, 0],
  [
    'a date by a clock that is an hour fast',
    { 'retry-after': 'Thu, 01 Jan 2026 13:02:30 GMT', date: 'Thu, 01 Jan 2026 13:00:00 GMT' },
    150_000,
  ],
  [
    'a date beside an unreadable Date header',
    { 'retry-after': 'Thu, 01 Jan 2026 12:02:30 GMT', date: 'yesterday' },
    150_000,
  ],
  ['nothing', {}, 0],
  ['an empty text', { 'retry-after': '' }, 0],
  ['words', { 'retry-after': 'soon' }, 0],
  ['a negative number', { 'retry-after': '-5' }, 0],
  ['a fraction', { 'retry-after': '1.5' }, 0],
  ['a date that does not exist', { 'retry-after': 'Thu, 99 Jan 2026 12:00:00 GMT' }, 0],
  ['two values', { 'retry-after': ['10', '20'] }, 0],
])('Retry-After with %s', (_name, headers, expected) => {
  expect(retryAfterMs(503, headers, NOW)).toBe(expected);
  expect(retryAfterMs(429, headers, NOW)).toBe(expected);
});

test.each([200, 301, 408, 413, 500, 502])('%i does not ask to wait', (status) => {
  expect(retryAfterMs(status, { 'retry-after': '120' }, NOW)).toBe(0);
});

describe('a response', () => {
  const receivers = new Receivers();
  afterEach(() => receivers.close());

  test.each([
    [503, '120', 120_000],
    [429, '7', 7_000],
    [500, '120', 0],
  ])('%i with Retry-After: %s', async (status, asked, expected) => {
    const port = await receivers.http((_request, response) =>
      response.writeHead(status, { 'retry-after': asked }).end(),
    );
    const outcome = await receivers.sender().send(notification(`http://127.0.0.1:${port}/`));
    expect(outcome).toMatchObject({ kind: 'refused', status, retryAfterMs: expected });
  });
});
