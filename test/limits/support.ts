import type { Clock, SharedCount, SharedCounter } from '../../src/limits/limiter.js';

/** A clock that the test moves, and the tasks that wait for it. */
export class TestClock implements Clock {
  private time = 0;
  private tasks: { at: number; run: () => void }[] = [];

  now = (): number => this.time;

  skip(ms: number): void {
    this.time += ms;
  }

  after(ms: number, run: () => void): void {
    this.tasks.push({ at: this.time + ms, run });
  }

  /** Moves the time and runs every task that becomes due, each with all its asynchronous work. */
  async pass(ms: number): Promise<void> {
    const end = this.time + ms;
    for (;;) {
      const next = this.tasks.sort((one, other) => one.at - other.at)[0];
      if (!next || next.at > end) break;
      this.tasks.shift();
      this.time = Math.max(this.time, next.at);
      next.run();
      await new Promise((resolve) => setImmediate(resolve));
    }
    this.time = end;
  }
}

/** The shared store in memory: windows of 60 s. */
export class TestStore implements SharedCounter {
  fails = false;
  calls = 0;
  private windows = new Map<string, { count: number; endsAt: number }>();

  constructor(private readonly clock: TestClock) {}

  async penalty(key: string, points: number): Promise<SharedCount> {
    this.call();
    const window = this.live(key) ?? { count: 0, endsAt: this.clock.now() + 60_000 };
    window.count += points;
    this.windows.set(key, window);
    return this.countOf(window);
  }

  async get(key: string): Promise<SharedCount | null> {
    this.call();
    const window = this.live(key);
    return window ? this.countOf(window) : null;
  }

  forget(): void {
    this.windows.clear();
  }

  private call(): void {
    this.calls += 1;
    if (this.fails) throw new Error('the store is away');
  }

  private live(key: string) {
    const window = this.windows.get(key);
    return window && window.endsAt > this.clock.now() ? window : null;
  }

  private countOf({ count, endsAt }: { count: number; endsAt: number }): SharedCount {
    return { consumedPoints: count, msBeforeNext: endsAt - this.clock.now() };
  }
}
