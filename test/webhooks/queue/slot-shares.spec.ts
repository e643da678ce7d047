import { describe, expect, test } from '@jest/globals';
import { type Refusal, type Slot, SlotShares } from '../../../src/webhooks/queue/open-requests.js';

const SLOTS = 64;
const EIGHTH = SLOTS / 8;
const HALF = SLOTS / 2;
/** How many jobs of one client wait for its first answers. */
const WAITING = EIGHTH;
const SECOND = 1_000;

const isSlot = (answer: Slot | Refusal): answer is Slot => 'release' in answer;

/** Jobs that ask for slots, requests that stay open until the test ends them, and a clock that the test moves. */
class Traffic {
  now = 0;
  readonly shares = new SlotShares(SLOTS, () => this.now);
  readonly running: { client: string; host: string; slot: Slot }[] = [];
  readonly refused: Refusal[] = [];

  /** Lets `count` jobs ask for a slot. Returns once those that need not wait have their answer. */
  async ask(client: string, hostOf: string | ((n: number) => string), count = 1): Promise<void> {
    for (let n = 0; n < count; n += 1) {
      const host = typeof hostOf === 'string' ? hostOf : hostOf(n);
      void this.shares.take({ client, host }).then((answer) => {
        if (isSlot(answer)) this.running.push({ client, host, slot: answer });
        else this.refused.push(answer);
      });
    }
    await answered();
  }

  async end(count = Infinity): Promise<void> {
    for (const { slot } of this.running.splice(0, count)) slot.release(true);
    await answered();
  }

  /** After this, `host` is known to be quick. */
  async answerQuickly(client: string, host: string): Promise<void> {
    await this.ask(client, host);
    this.running.pop()!.slot.release(true);
    await answered();
  }

  holds(client: string): number {
    return this.running.filter((request) => request.client === client).length;
  }
}

const answered = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const each = (n: number): string => `host-${n}.example`;

describe('one client with many hosts that hang', () => {
  test('holds an eighth of the slots, however many hosts it has', async () => {
    const traffic = new Traffic();
    await traffic.ask('many', each, 10_000);
    expect(traffic.holds('many')).toBe(EIGHTH);
    traffic.now = 2 * SECOND;
    await traffic.ask('many', (n) => `more-${n}.example`, 1_000);
    expect(traffic.holds('many')).toBe(EIGHTH);
    await traffic.ask('other', 'quick.example', EIGHTH);
    expect(traffic.holds('other')).toBe(EIGHTH);
  });

  test('is sent back for longer once its requests are old, and its jobs do not stay in the worker', async () => {
    const traffic = new Traffic();
    await traffic.ask('many', each, EIGHTH + WAITING + 1);
    expect(traffic.refused).toEqual([{ of: 'client many', retry: 'soon' }]);
    traffic.now = 2 * SECOND;
    await traffic.ask('many', 'one-more.example');
    expect(traffic.refused.at(-1)).toEqual({ of: 'client many', retry: 'later' });
    traffic.running.pop()!.slot.release(true);
    await answered();
    expect(traffic.refused.filter(({ retry }) => retry === 'later')).toHaveLength(WAITING);
  });

  test('leaves room to wait for a new client', async () => {
    const traffic = new Traffic();
    await traffic.ask('many', each, 10_000);
    await traffic.ask('new', 'new.example', 2 * EIGHTH);
    expect(traffic.holds('new')).toBe(EIGHTH);
    expect(traffic.refused.filter(({ of }) => of === 'client new')).toEqual([]);
  });

  test('still uses its quick hosts', async () => {
    const traffic = new Traffic();
    await traffic.answerQuickly('many', 'quick.example');
    await traffic.ask('many', each, EIGHTH);
    traffic.now = 2 * SECOND;
    await traffic.ask('many', 'quick.example', 3);
    expect(traffic.holds('many')).toBe(EIGHTH + 3);
  });

  test('gets every slot of its share again when its requests have ended', async () => {
    const traffic = new Traffic();
    await traffic.ask('many', each, EIGHTH);
    traffic.now = 30 * SECOND;
    await traffic.end();
    await traffic.ask('many', each, EIGHTH);
    expect(traffic.holds('many')).toBe(EIGHTH);
  });

  test('may hold three eighths while it has been the only client for a minute', async () => {
    const traffic = new Traffic();
    await traffic.ask('other', 'quick.example');
    await traffic.end();
    await traffic.ask('many', each, EIGHTH);
    traffic.now = 61 * SECOND;
    await traffic.ask('many', each, SLOTS);
    expect(traffic.holds('many')).toBe(3 * EIGHTH);
    await traffic.ask('other', 'quick.example');
    await traffic.ask('many', each);
    expect(traffic.refused.at(-1)).toEqual({ of: 'client many', retry: 'later' });
  });
});

describe('one host of many clients that hangs', () => {
  test('holds an eighth of the slots', async () => {
    const traffic = new Traffic();
    for (let n = 0; n < 20; n += 1) await traffic.ask(`client-${n}`, 'slow.example', 2);
    expect(traffic.running).toHaveLength(EIGHTH);
    traffic.now = 2 * SECOND;
    await traffic.ask('new', 'slow.example');
    expect(traffic.refused.at(-1)).toEqual({ of: 'host slow.example', retry: 'later' });
  });

  test('that was quick before gets no more once an eighth is old', async () => {
    const traffic = new Traffic();
    await traffic.answerQuickly('a', 'host.example');
    await traffic.ask('a', 'host.example', EIGHTH);
    traffic.now = 2 * SECOND;
    await traffic.ask('b', 'host.example');
    expect(traffic.refused).toEqual([{ of: 'host host.example', retry: 'later' }]);
  });
});

describe('a healthy receiver', () => {
  test('that nothing is known about gets half of the slots after its first answer', async () => {
    const traffic = new Traffic();
    await traffic.ask('a', 'quick.example', 200);
    expect(traffic.running).toHaveLength(EIGHTH);
    traffic.now = 50;
    await traffic.end(1);
    expect(traffic.running).toHaveLength(EIGHTH - 1 + WAITING);
    await traffic.ask('a', 'quick.example', SLOTS);
    expect(traffic.running).toHaveLength(HALF);
  });

  test('at half of the slots is not sent away; its jobs wait', async () => {
    const traffic = new Traffic();
    await traffic.answerQuickly('a', 'quick.example');
    await traffic.ask('a', 'quick.example', SLOTS);
    expect(traffic.running).toHaveLength(HALF);
    await traffic.end(10);
    expect(traffic.running).toHaveLength(HALF);
    await traffic.end();
    await traffic.end();
    expect(traffic.refused).toEqual([]);
  });

  test('stays quick after a single slow answer', async () => {
    const traffic = new Traffic();
    await traffic.answerQuickly('a', 'quick.example');
    await traffic.ask('a', 'quick.example');
    traffic.now = 2 * SECOND;
    await traffic.answerQuickly('a', 'quick.example');
    await traffic.ask('a', 'quick.example', 2 * EIGHTH);
    expect(traffic.running).toHaveLength(2 * EIGHTH + 1);
  });

  test('is not known to be quick by jobs that sent nothing', async () => {
    const traffic = new Traffic();
    await traffic.ask('a', 'unknown.example');
    traffic.running.pop()!.slot.release(false);
    await traffic.ask('a', 'unknown.example', 2 * EIGHTH);
    expect(traffic.running).toHaveLength(EIGHTH);
  });
});

describe('many clients that hang', () => {
  const hangHalf = async (): Promise<Traffic> => {
    const traffic = new Traffic();
    for (const client of ['a', 'b', 'c', 'd']) await traffic.ask(client, (n) => `${client}-${n}.example`, EIGHTH);
    traffic.now = 2 * SECOND;
    return traffic;
  };

  test('hold half of the slots together; a host that is known to be slow gets none then', async () => {
    const traffic = await hangHalf();
    expect(traffic.running).toHaveLength(HALF);
    await traffic.ask('e', 'a-1.example');
    expect(traffic.refused).toEqual([{ of: 'client e', retry: 'later' }]);
  });

  test('do not keep a client with an unknown host from its first request, nor from more when that was quick', async () => {
    const traffic = await hangHalf();
    await traffic.ask('new', 'new.example', 3);
    expect(traffic.holds('new')).toBe(1);
    traffic.running.pop()!.slot.release(true);
    await answered();
    expect(traffic.holds('new')).toBe(2);
  });
});

test('requests that have ended leave nothing behind but a limited number of known hosts', async () => {
  const traffic = new Traffic();
  for (let n = 0; n < 1_000; n += 1) await traffic.answerQuickly(`client-${n}`, each(n));
  const { requests, waiting } = traffic.shares as unknown as {
    requests: { counts: Map<string, unknown>; young: Set<unknown> };
    waiting: unknown[];
  };
  expect([requests.counts.size, requests.young.size, waiting.length]).toEqual([0, 0, 0]);
});
