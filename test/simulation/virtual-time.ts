interface Event {
  at: number;
  order: number;
  happen: () => void;
}

/** A clock that advances only when no work is left at the current moment. Real database work takes no virtual time. */
export class VirtualTime {
  private events: Event[] = [];
  private order = 0;
  private underWay = 0;
  private databaseTime = 0;

  constructor(
    public now: number,
    /** Sets the clock of the database. */
    private readonly setDatabaseTime: (now: number) => Promise<void>,
  ) {}

  at(moment: number, happen: () => void): void {
    this.events.push({ at: Math.max(moment, this.now), order: (this.order += 1), happen });
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.at(this.now + ms, resolve));
  }

  /** Replaces the timers of the code under test. */
  readonly intervals = {
    setInterval: (happen: () => void, ms: number) => {
      const timer = { isCleared: false, unref: () => timer };
      const next = (): void =>
        this.at(this.now + ms, () => {
          if (timer.isCleared) return;
          happen();
          next();
        });
      next();
      return timer;
    },
    clearInterval: (timer?: { isCleared: boolean }) => {
      if (timer) timer.isCleared = true;
    },
  };

  /** Runs real work, such as a query. Virtual time does not advance until it is done. */
  async work<T>(real: () => Promise<T>): Promise<T> {
    this.underWay += 1;
    try {
      if (this.databaseTime !== this.now) await this.setDatabaseTime((this.databaseTime = this.now));
      return await real();
    } finally {
      this.underWay -= 1;
    }
  }

  /** Runs all events until `end`, or until `isOver` returns true. */
  async runUntil(end: number, isOver: () => Promise<boolean> = () => Promise.resolve(false)): Promise<void> {
    for (;;) {
      const next = this.earliest();
      if (!next || next.at > end || (await isOver())) break;
      this.events.splice(this.events.indexOf(next), 1);
      this.now = Math.max(this.now, next.at);
      next.happen();
      await this.settle();
    }
    this.now = Math.max(this.now, end);
  }

  private earliest(): Event | undefined {
    return this.events.reduce<Event | undefined>(
      (best, event) =>
        !best || event.at < best.at || (event.at === best.at && event.order < best.order) ? event : best,
      undefined,
    );
  }

  /** Waits until no work is running and none was started by the last event. */
  private async settle(): Promise<void> {
    for (let quiet = 0; quiet < 4;) {
      await new Promise((resolve) => setImmediate(resolve));
      quiet = this.underWay === 0 ? quiet + 1 : 0;
    }
  }
}
