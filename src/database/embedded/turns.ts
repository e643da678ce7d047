interface Waiting<Holder> {
  readonly who: Holder;
  readonly start: () => void;
}

/** Hands the one session from holder to holder, first come first served. */
export class Turns<Holder> {
  #holder: Holder | undefined;
  #idle = false;
  #waiting: Waiting<Holder>[] = [];
  #timer: NodeJS.Timeout | undefined;

  /** `onIdle` is called for a holder that rested for `idleLimitMs` while others waited. */
  constructor(
    private readonly idleLimitMs: number,
    private readonly onIdle: (holder: Holder) => void,
  ) {}

  holds(who: Holder): boolean {
    return this.#holder === who;
  }

  async take(who: Holder): Promise<void> {
    if (this.#holder === undefined) this.#holder = who;
    if (this.#holder === who) return this.#setIdle(false);
    await new Promise<void>((start) => {
      this.#waiting.push({ who, start });
      this.#watch();
    });
  }

  /** The holder keeps the session and does nothing with it for now. */
  rest(who: Holder): void {
    if (this.#holder === who) this.#setIdle(true);
  }

  give(who: Holder): void {
    if (this.#holder !== who) return;
    const next = this.#waiting.shift();
    this.#holder = next?.who;
    this.#setIdle(false);
    next?.start();
  }

  #setIdle(idle: boolean): void {
    this.#idle = idle;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#watch();
  }

  #watch(): void {
    const holder = this.#holder;
    if (this.#timer || !this.#idle || holder === undefined || this.#waiting.length === 0) return;
    this.#timer = setTimeout(() => this.onIdle(holder), this.idleLimitMs);
  }
}
