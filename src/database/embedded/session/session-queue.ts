interface Waiter<Client> {
  readonly client: Client;
  readonly start: () => void;
}

/** Grants the one database session to one client at a time, first come, first served. */
export class SessionQueue<Client> {
  #holder: Client | undefined;
  #isIdle = false;
  #waiters: Waiter<Client>[] = [];
  #timer: NodeJS.Timeout | undefined;

  /** `onIdleTimeout` is called for a holder that was idle for `idleTimeoutMs` while others waited. */
  constructor(
    private readonly idleTimeoutMs: number,
    private readonly onIdleTimeout: (holder: Client) => void,
  ) {}

  isHolder(client: Client): boolean {
    return this.#holder === client;
  }

  async acquire(client: Client): Promise<void> {
    if (this.#holder === undefined) this.#holder = client;
    if (this.#holder === client) return this.#setIdle(false);
    await new Promise<void>((start) => {
      this.#waiters.push({ client, start });
      this.#startTimer();
    });
  }

  /** The holder keeps the session but runs nothing: it is inside a transaction. */
  markIdle(client: Client): void {
    if (this.#holder === client) this.#setIdle(true);
  }

  release(client: Client): void {
    if (this.#holder !== client) return;
    const next = this.#waiters.shift();
    this.#holder = next?.client;
    this.#setIdle(false);
    next?.start();
  }

  #setIdle(isIdle: boolean): void {
    this.#isIdle = isIdle;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#startTimer();
  }

  #startTimer(): void {
    const holder = this.#holder;
    if (this.#timer || !this.#isIdle || holder === undefined || this.#waiters.length === 0) return;
    this.#timer = setTimeout(() => this.onIdleTimeout(holder), this.idleTimeoutMs);
  }
}
