import { describe, expect, test } from '@jest/globals';
import { Batcher, IF_SLOW } from '../../../src/database/statements/batcher.js';

/** Work whose batches the test ends one by one. */
class Work {
  readonly batches: { items: number[]; end: () => void; fail: (error: Error) => void }[] = [];
  private began: () => void = () => undefined;

  readonly run = (items: number[]): Promise<number[]> =>
    new Promise((resolve, reject) => {
      this.batches.push({ items, end: () => resolve(items.map((item) => item * 2)), fail: reject });
      this.began();
    });

  /** Resolves when so many batches have begun. */
  async until(count: number): Promise<void> {
    while (this.batches.length < count) await new Promise<void>((resolve) => (this.began = resolve));
  }

  get items(): number[][] {
    return this.batches.map(({ items }) => items);
  }
}

const numbers = (count: number): number[] => Array.from({ length: count }, (_, index) => index);

describe('a batcher', () => {
  test('combines the calls of one turn, and gives each its own result', async () => {
    const work = new Work();
    const batcher = new Batcher(work.run);
    const results = Promise.all([1, 2, 3].map((item) => batcher.run(item)));
    await work.until(1);
    work.batches[0]!.end();
    expect([await results, work.items]).toEqual([[2, 4, 6], [[1, 2, 3]]]);
  });

  test('does not make a sole call wait: it begins in the same turn', async () => {
    const work = new Work();
    void new Batcher(work.run).run(1);
    await new Promise((resolve) => setImmediate(resolve));
    expect(work.items).toEqual([[1]]);
  });

  test('runs one batch at a time, unless more are allowed', async () => {
    const work = new Work();
    const batcher = new Batcher(work.run);
    const first = batcher.run(0);
    await work.until(1);
    const others = Promise.all(numbers(40).map((item) => batcher.run(item)));
    await new Promise((resolve) => setImmediate(resolve));
    expect(work.batches).toHaveLength(1);
    work.batches[0]!.end();
    await first;
    await work.until(2);
    work.batches[1]!.end();
    expect(await others).toEqual(numbers(40).map((item) => item * 2));
  });

  test('with several batches allowed begins the next one as soon as it is worth it', async () => {
    const work = new Work();
    const batcher = new Batcher(work.run, 2);
    void batcher.run(0);
    await work.until(1);
    for (const item of numbers(16)) void batcher.run(item);
    await work.until(2);
    expect(work.items[1]).toEqual(numbers(16));
    for (const item of numbers(16)) void batcher.run(item);
    await new Promise((resolve) => setImmediate(resolve));
    expect(work.batches).toHaveLength(2);
  });

  test('with several batches allowed does not hold up a sole call behind one that hangs', async () => {
    const work = new Work();
    const batcher = new Batcher(work.run, 2);
    void batcher.run(0);
    await work.until(1);
    const second = batcher.run(1);
    await work.until(2);
    work.batches[1]!.end();
    expect(await second).toBe(2);
  });

  test('for work in large batches does not begin the next one because of many items, but does because of one that hangs', async () => {
    const work = new Work();
    const batcher = new Batcher(work.run, 2, IF_SLOW);
    void batcher.run(0);
    await work.until(1);
    const others = Promise.all(numbers(40).map((item) => batcher.run(item)));
    await new Promise((resolve) => setImmediate(resolve));
    expect(work.batches).toHaveLength(1);
    await work.until(2);
    work.batches[1]!.end();
    expect(await others).toHaveLength(40);
  });

  test('never exceeds the number of items of a batch', async () => {
    const work = new Work();
    const batcher = new Batcher(work.run, 3);
    for (const item of numbers(150)) void batcher.run(item);
    await work.until(1);
    for (let ended = 0; ended < 2; ended += 1) {
      work.batches[ended]!.end();
      await work.until(ended + 2);
    }
    expect(work.items.map(({ length }) => length)).toEqual([64, 64, 22]);
  });
});

describe('a batch that fails', () => {
  const failOn = (bad: number, error: Error) => async (items: number[]) => {
    if (items.includes(bad)) throw error;
    return items;
  };

  test('is repeated item by item, so that only the bad item fails', async () => {
    const batcher = new Batcher(failOn(2, new Error('bad row')));
    const results = await Promise.allSettled([1, 2, 3].map((item) => batcher.run(item)));
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  });

  test('because the database is down fails as a whole and is not repeated', async () => {
    let calls = 0;
    const down = Object.assign(new Error('connection lost'), { code: 'ECONNRESET' });
    const batcher = new Batcher(async () => {
      calls += 1;
      throw down;
    });
    const results = await Promise.allSettled([1, 2, 3].map((item) => batcher.run(item)));
    expect([results.map(({ status }) => status), calls]).toEqual([['rejected', 'rejected', 'rejected'], 1]);
  });
});
