import { describe, expect, test } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { limitKey, Limiter, type SharedCounter } from '../../src/limits/limiter.js';
import { TestClock, TestStore } from './support.js';

const RATE = { count: 3, seconds: 60 };

const limiter = (clock: TestClock, store: SharedCounter | null = null): Limiter => new Limiter(RATE, store, clock);

function countTimes(limited: Limiter, times: number): number[] {
  return Array.from({ length: times }, () => limited.count(limitKey('a')));
}

describe('a limit', () => {
  test('allows its number of events in a window, and says how long the window still lasts', () => {
    const clock = new TestClock();
    const limited = limiter(clock);
    expect(countTimes(limited, 3)).toEqual([0, 0, 0]);
    expect(limited.read(limitKey('a'))).toEqual({ left: 0, wait: 60 });
    clock.skip(20_500);
    expect(limited.count(limitKey('a'))).toBe(40);
    expect(limited.read(limitKey('b'))).toEqual({ left: 3, wait: 0 });
  });

  test('begins a new window after the end of the last one', () => {
    const clock = new TestClock();
    const limited = limiter(clock);
    countTimes(limited, 9);
    clock.skip(60_000);
    expect(limited.read(limitKey('a'))).toEqual({ left: 3, wait: 0 });
    expect(countTimes(limited, 4)).toEqual([0, 0, 0, 60]);
  });

  test('keeps only the most recently used keys', () => {
    const limited = limiter(new TestClock());
    countTimes(limited, 3);
    for (let n = 0; n < 50_000; n += 1) limited.count(limitKey(`invented-${n}`));
    expect(limited.read(limitKey('a')).left).toBe(3);
    expect(limited.read(limitKey('invented-49999')).left).toBe(2);
  });
});

describe('two processes', () => {
  test('know each other’s events within a second', async () => {
    const clock = new TestClock();
    const store = new TestStore(clock);
    const [one, other] = [limiter(clock, store), limiter(clock, store)];
    countTimes(one, 3);
    await clock.pass(1_000);
    await other.refresh(limitKey('a'));
    expect(other.read(limitKey('a')).wait).toBeGreaterThan(0);
  });

  test('add up what each of them counted', async () => {
    const clock = new TestClock();
    const store = new TestStore(clock);
    const [one, other] = [limiter(clock, store), limiter(clock, store)];
    countTimes(one, 2);
    countTimes(other, 1);
    await clock.pass(1_000);
    await one.refresh(limitKey('a'));
    expect([one.read(limitKey('a')).left, other.read(limitKey('a')).left]).toEqual([0, 0]);
  });

  test('count alone while the shared store fails, and together once it works again', async () => {
    const clock = new TestClock();
    const store = new TestStore(clock);
    const [one, other] = [limiter(clock, store), limiter(clock, store)];
    store.fails = true;
    countTimes(one, 2);
    await clock.pass(1_000);
    expect([one.read(limitKey('a')).left, other.read(limitKey('a')).left]).toEqual([1, 3]);
    store.fails = false;
    await clock.pass(5_000);
    await one.refresh(limitKey('a'));
    await other.refresh(limitKey('a'));
    expect(other.read(limitKey('a')).left).toBe(1);
  });

  test('do not wait for a store that just failed', async () => {
    const clock = new TestClock();
    const store = new TestStore(clock);
    store.fails = true;
    const limited = limiter(clock, store);
    for (let n = 0; n < 10; n += 1) await limited.refresh(limitKey(`key-${n}`));
    expect(store.calls).toBe(1);
    await clock.pass(5_000);
    await limited.refresh(limitKey('a'));
    expect(store.calls).toBe(2);
  });

  test('keep their own counts if the store loses its data', async () => {
    const clock = new TestClock();
    const store = new TestStore(clock);
    const limited = limiter(clock, store);
    countTimes(limited, 3);
    await clock.pass(1_000);
    store.forget();
    await limited.refresh(limitKey('a'));
    expect(limited.read(limitKey('a')).left).toBe(0);
    countTimes(limited, 1);
    await clock.pass(1_000);
    expect(limited.read(limitKey('a')).left).toBe(0);
  });

  test('keep their own counts if the store answers that its window has ended', async () => {
    const clock = new TestClock();
    const penalty = (_: string, consumedPoints: number) => Promise.resolve({ consumedPoints, msBeforeNext: -1 });
    const limited = limiter(clock, { penalty, get: () => Promise.resolve(null) });
    countTimes(limited, 3);
    await clock.pass(1_000);
    expect(limited.read(limitKey('a')).left).toBe(0);
  });

  test.each([
    ['are counted while the store answers', false],
    ['the store has failed to take', true],
  ])('share the events that %s, without a further event', async (_, fails) => {
    const clock = new TestClock();
    const store = new TestStore(clock);
    const limited = limiter(clock, store);
    const other = limiter(clock, store);
    store.fails = fails;
    const penalty = store.penalty.bind(store);
    store.penalty = (key, points) => {
      store.penalty = penalty;
      if (!fails) countTimes(limited, 1);
      return penalty(key, points);
    };
    countTimes(limited, fails ? 2 : 1);
    await clock.pass(1_000);
    store.fails = false;
    await clock.pass(10_000);
    await other.refresh(limitKey('a'));
    expect(other.read(limitKey('a')).left).toBe(1);
  });

  test('exchange each key at most four times a second, however many events there are', async () => {
    const clock = new TestClock();
    const store = new TestStore(clock);
    const limited = limiter(clock, store);
    for (let n = 0; n < 10; n += 1) {
      countTimes(limited, 100);
      await limited.refresh(limitKey('a'));
      await clock.pass(100);
    }
    expect(store.calls).toBeLessThanOrEqual(4);
  });
});

test('a store that fails is reported once, however many limiters use it', async () => {
  const lines: string[] = [];
  const warn = (line: string) => void lines.push(line);
  Logger.overrideLogger({ log: warn, error: warn, warn });
  const fails = (): Promise<never> => Promise.reject(new Error('no answer here'));
  const clock = new TestClock();
  for (const limited of [1, 2].map(() => limiter(clock, { penalty: fails, get: fails }))) countTimes(limited, 1);
  await clock.pass(30_000);
  Logger.overrideLogger(true);
  expect(lines.filter((line) => line.includes('no answer here'))).toEqual([
    'the shared rate limit store failed (no answer here); this process counts alone until it works again',
  ]);
});
