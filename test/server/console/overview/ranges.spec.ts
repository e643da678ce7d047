import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { addOutcomes } from '../../../../src/webhooks/figures/add-outcomes.js';
import { beginOf, inHours, pointsOf, RANGES } from '../../../../src/server/console/figures/figures.js';
import { basic, type TestClient, TestUsher } from '../../../support/usher.js';
import { ConsolePages, listedIds } from '../console-pages.js';
import { lose } from './lose.js';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

let usher: TestUsher;
let client: TestClient;
const pages = new ConsolePages(() => usher);
beforeAll(async () => {
  usher = await TestUsher.start({ USHER_ROLE: 'api' });
  client = await usher.client();
});
afterAll(() => usher.stop());

const SPANS = { '1h': DAY_MS / 24, '24h': DAY_MS, '7d': 7 * DAY_MS, '30d': 30 * DAY_MS };

test.each(RANGES)('$name begins with the period in which it began, and ends with the one that runs now', (range) => {
  const span = SPANS[range.key as keyof typeof SPANS];
  const midnight = Date.UTC(2026, 10, 27);
  for (const now of [midnight - 1, midnight, midnight + 1, midnight + 995 * MINUTE_MS])
    for (const one of [range, inHours(range)]) {
      const begin = beginOf(one, now);
      expect([begin <= now - span, begin + one.periodMs > now - span, begin % one.periodMs]).toEqual([true, true, 0]);
      const running = now - (now % one.periodMs);
      const sums = new Map([begin, running].map((startsAt) => [startsAt, { attempts: 1 }]));
      const points = pointsOf(one, now, sums);
      expect(new Set(points.map(({ begin }) => begin)).size).toBe(points.length);
      const counted = points.map(({ figures }) => figures.attempts);
      expect([counted[0], counted.at(-1)]).toEqual([1, 1]);
    }
});

test('no failure of the last 7 days is missing in the number, the chart, the list and the file', async () => {
  const now = Date.now();
  const ids = [
    await lose(client, 'recent', now - MINUTE_MS),
    await lose(client, 'early', now - 7 * DAY_MS + MINUTE_MS),
  ];
  await lose(client, 'before', now - 7 * DAY_MS - 7 * 60 * MINUTE_MS);
  // In any minute of an hour they are more than those of the range.
  for (const days of [8, 9]) await lose(client, `long-before-${days}`, now - days * DAY_MS);
  const text = await pages.counted('/ops?range=7d', /<dt>Ended FAILED<\/dt>\s*<dd[^>]*>\s*<a[^]*aria-label="Attempts/);
  expect(text).toContain('2 attempts, 2 failed (100 %)');
  const [, href = '', number] = /<dt>Ended FAILED<\/dt>\s*<dd[^>]*>\s*<a href="([^"]*)"\s*>(\d+)/.exec(text) ?? [];
  expect(number).toBe('2');
  expect(text.match(/<text [^>]*text-anchor="middle">\s*\d\d-\d\d \d\dh/g)).toHaveLength(2);
  const list = href.replaceAll('&amp;', '&');
  expect(listedIds(await pages.get(list))).toEqual(ids);
  const { body } = await usher.request('GET', list.replace('?', '.csv?'), { authorization: basic('ops', 'ops') });
  for (const [reference, isThere] of Object.entries({ recent: true, early: true, before: false }))
    expect(String(body.text).includes(`"${reference}"`)).toBe(isThere);
});

test('figures are compared with those of the time before only if those are wholly kept', async () => {
  const endedAt = Date.now() - 40 * DAY_MS;
  const webhook = { clientId: client.id, notifyUrl: 'https://lost.example/notify', createdAt: endedAt };
  await usher.dataSource.transaction((manager) =>
    addOutcomes(manager, [{ webhook, endedAt, attempt: { durationMs: 10, hasFailed: false }, ended: 'SUCCESS' }]),
  );
  const compared = async (path: string) =>
    />was \d/.test(await pages.counted(path, /data-name="(Not delivered|Failed)"/));
  const paths = ['/ops', '/ops/receivers', '/ops/receivers/lost.example'];
  expect(await Promise.all(paths.map((path) => compared(`${path}?range=30d`)))).toEqual([false, false, false]);
  expect(await compared('/ops?range=7d')).toBe(true);
});
