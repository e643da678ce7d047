import { setImmediate as nextIteration } from 'node:timers/promises';
import type { PGlite } from '../folder/data-folder.js';
import { ProtocolError, query, readReply, type Reply } from '../protocol/messages.js';

/** PGlite works in microtasks only; without a pause, timers and sockets would never run. */
const YIELD_AFTER_MS = 2;

export const DEFAULT_SEARCH_PATH = 'public';

/** PGlite's one session. Only the holder of the session queue may call it. */
export class Session {
  #searchPath = DEFAULT_SEARCH_PATH;
  #busySince = performance.now();

  constructor(private readonly db: Pick<PGlite, 'execProtocolRawStream'>) {}

  async yieldToEventLoop(): Promise<void> {
    if (performance.now() - this.#busySince < YIELD_AFTER_MS) return;
    await nextIteration();
    this.#busySince = performance.now();
  }

  async execute(bytes: Buffer): Promise<Reply> {
    const parts: Buffer[] = [];
    // Copied, because the bytes are a view of PGlite's memory. A database in a folder needs no syncToFs.
    const onRawData = (part: Uint8Array): void => void parts.push(Buffer.from(part));
    await this.db.execProtocolRawStream(bytes, { syncToFs: false, onRawData });
    return readReply(Buffer.concat(parts));
  }

  /** Runs the statements and returns the first value of the first row. */
  async queryValue(...statements: string[]): Promise<string> {
    const reply = await this.execute(query(statements.join(';')));
    if (reply.error !== undefined) throw new ProtocolError('XX000', reply.error);
    return reply.firstValue ?? '';
  }

  async setSearchPath(searchPath: string): Promise<void> {
    if (searchPath === this.#searchPath) return;
    await this.queryValue(`SELECT set_config('search_path', '${searchPath.replaceAll("'", "''")}', false)`);
    this.#searchPath = searchPath;
  }

  /** Asks the database, because PGlite sends no ParameterStatus when a client changes the setting. */
  async readSearchPath(): Promise<string> {
    this.#searchPath = await this.queryValue('SHOW search_path');
    return this.#searchPath;
  }
}

/** Grants the one database session to one client at a time, first come, first served. */
export class SessionQueue<Client> {
  #holder: Client | undefined;
  #isIdle = false;
  #waiters: { client: Client; start: () => void }[] = [];
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
  markIdle(): void {
    this.#setIdle(true);
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
