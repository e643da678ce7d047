import { expect, test } from '@jest/globals';
import { LONGEST_PUT_OFF, PutOffs } from '../../../src/webhooks/queue/host-shares.js';

const INTERVAL = 30_000;
const take = (putOffs: PutOffs, count: number, host = 'slow.example'): number[] =>
  Array.from({ length: count }, () => putOffs.next(host));

test('who is turned away comes back after a minimum interval, one after the other', () => {
  const pauses = take(new PutOffs(INTERVAL, () => 5_000), 100);
  expect(pauses[0]).toBe(INTERVAL);
  for (const [index, pause] of pauses.slice(1).entries()) expect(pause).toBeGreaterThan(pauses[index]!);
  expect(pauses.at(-1)).toBeLessThan(INTERVAL * 1.5);
});

test('ten thousand of one host come back over eight minimum intervals, no second of which has most of them', () => {
  const seconds = new Map<number, number>();
  for (const pause of take(new PutOffs(INTERVAL), 10_000)) {
    expect(pause).toBeLessThanOrEqual(LONGEST_PUT_OFF * INTERVAL);
    const second = Math.floor(pause / 1_000);
    seconds.set(second, (seconds.get(second) ?? 0) + 1);
  }
  expect(Math.max(...seconds.values())).toBeLessThan(100);
});

test('another host’s line is another', () => {
  const putOffs = new PutOffs(INTERVAL, () => 0);
  take(putOffs, 1_000);
  expect(putOffs.next('another.example')).toBe(INTERVAL);
});
