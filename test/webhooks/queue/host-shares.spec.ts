import { describe, expect, test } from '@jest/globals';
import { HostShares } from '../../../src/webhooks/queue/host-shares.js';
import { eventually } from '../../support/eventually.js';

const SLOTS = 16;

/** Requests that stay open until the test ends them, and a clock that the test moves. */
class Traffic {
  now = 0;
  readonly shares = new HostShares(SLOTS, () => this.now);
  private readonly ends: (() => void)[] = [];

  open(host: string, count = 1): Promise<'done' | null>[] {
    return Array.from({ length: count }, () => this.shares.within(host, () => this.request()));
  }

  end(count: number): void {
    for (const end of this.ends.splice(0, count)) end();
  }

  get running(): number {
    return this.ends.length;
  }

  private request(): Promise<'done'> {
    return new Promise((resolve) => this.ends.push(() => resolve('done')));
  }
}

describe('a host', () => {
  test('gets at most half of the slots, and further requests wait', async () => {
    const traffic = new Traffic();
    const requests = traffic.open('a', 12);
    await eventually('half of the slots are in use', () => traffic.running === SLOTS / 2);
    traffic.end(SLOTS / 2);
    await eventually('the rest runs', () => traffic.running === 4);
    traffic.end(4);
    expect(await Promise.all(requests)).toEqual(Array.from({ length: 12 }, () => 'done'));
  });

  test('whose slow requests hold an eighth of the slots gets no more, and other hosts do', async () => {
    const traffic = new Traffic();
    void traffic.open('slow', 2);
    traffic.now = 1_001;
    expect(await traffic.shares.within('slow', () => Promise.resolve('done'))).toBeNull();
    expect(await traffic.shares.within('quick', () => Promise.resolve('done'))).toBe('done');
  });

  test('that becomes slow has its waiting requests rejected', async () => {
    const traffic = new Traffic();
    const requests = traffic.open('a', 9);
    traffic.now = 1_001;
    expect(await requests[8]).toBeNull();
  });

  test('gets slots again after its slow requests have ended', async () => {
    const traffic = new Traffic();
    const requests = traffic.open('slow', 2);
    await eventually('both run', () => traffic.running === 2);
    traffic.now = 1_001;
    traffic.end(2);
    await Promise.all(requests);
    expect(await traffic.shares.within('slow', () => Promise.resolve('done'))).toBe('done');
  });
});

test('all slow hosts together get at most half of the slots', async () => {
  const traffic = new Traffic();
  for (const host of ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']) void traffic.open(host, 1);
  traffic.now = 1_001;
  expect(await traffic.shares.within('a', () => Promise.resolve('done'))).toBeNull();
  expect(await traffic.shares.within('new', () => Promise.resolve('done'))).toBe('done');
});

test('a request that throws releases its slot', async () => {
  const traffic = new Traffic();
  const failing = Array.from({ length: SLOTS }, () =>
    traffic.shares.within('a', () => Promise.reject(new Error('no'))),
  );
  await Promise.allSettled(failing);
  expect(await traffic.shares.within('a', () => Promise.resolve('done'))).toBe('done');
});
