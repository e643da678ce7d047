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
  #crash: ProtocolError | undefined;

  constructor(private readonly db: Pick<PGlite, 'execProtocolRawStream'>) {}

  async yieldToEventLoop(): Promise<void> {
    if (performance.now() - this.#busySince < YIELD_AFTER_MS) return;
    await nextIteration();
    this.#busySince = performance.now();
  }

  /** Whether PGlite has stopped itself. It must not be called again, because that call might never return. */
  get hasCrashed(): boolean {
    return this.#crash !== undefined;
  }

  /** `complete`: whether the bytes ask for a ReadyForQuery. Without it PGlite has stopped, as after a PANIC. */
  async execute(bytes: Buffer, complete = true): Promise<Reply> {
    if (this.#crash) throw this.#crash;
    const parts: Buffer[] = [];
    // Copied, because the bytes are a view of PGlite's memory. A database in a folder needs no syncToFs.
    const onRawData = (part: Uint8Array): void => void parts.push(Buffer.from(part));
    await this.db.execProtocolRawStream(bytes, { syncToFs: false, onRawData });
    const reply = readReply(Buffer.concat(parts));
    if (reply.status || !complete) return reply;
    const reason = reply.error ?? 'it returned no ReadyForQuery';
    this.#crash = new ProtocolError('57P02', `the embedded database has stopped (${reason}); ${remedyFor(reason)}`);
    throw this.#crash;
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

const remedyFor = (reason: string): string =>
  /No space left/.test(reason) ? 'make room on the disk and restart this process' : 'restart this process';

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
    if (this.#holder === client) return this.#setBusy();
    await new Promise<void>((start) => {
      this.#waiters.push({ client, start });
      this.#startTimer();
    });
  }

  /** The holder keeps the session but runs nothing: it is inside a transaction. */
  markIdle(): void {
    this.#isIdle = true;
    this.#startTimer();
  }

  release(client: Client): void {
    if (this.#holder !== client) return;
    const next = this.#waiters.shift();
    this.#holder = next?.client;
    this.#setBusy();
    next?.start();
  }

  #setBusy(): void {
    this.#isIdle = false;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #startTimer(): void {
    const holder = this.#holder;
    if (this.#timer || !this.#isIdle || holder === undefined || this.#waiters.length === 0) return;
    this.#timer = setTimeout(() => this.onIdleTimeout(holder), this.idleTimeoutMs);
  }
}

/** The effect of a LISTEN or UNLISTEN; the channel '*' means all channels. */
export interface SubscriptionChange {
  readonly listen: boolean;
  readonly channel: string;
}

const TOKEN =
  /--[^\n]*|\/\*[^]*?\*\/|\s+|'(?:[^']|'')*'|\$(\w*)\$[^]*?\$\1\$|"(?:[^"]|"")*"|[\p{L}_][\p{L}\p{N}_$]*|[^]/gu;
const BLANK = /^(?:--|\/\*|\s)/;

/** The LISTEN and UNLISTEN statements in `sql`; comments, strings and function bodies are skipped. */
export function subscriptionChangesIn(sql: string): SubscriptionChange[] {
  if (!/\b(?:un)?listen\b/i.test(sql)) return [];
  return statementsIn(sql).flatMap(([verb = '', channel, ...rest]) => {
    if (channel === undefined || rest.length > 0 || !/^(?:un)?listen$/i.test(verb)) return [];
    return [{ listen: /^listen$/i.test(verb), channel: channelName(channel) }];
  });
}

function statementsIn(sql: string): string[][] {
  const statements: string[][] = [[]];
  for (const [token] of sql.matchAll(TOKEN)) {
    if (token === ';') statements.push([]);
    else if (!BLANK.test(token)) statements.at(-1)?.push(token);
  }
  return statements;
}

function channelName(token: string): string {
  return token.startsWith('"') ? token.slice(1, -1).replaceAll('""', '"') : token.toLowerCase();
}

/** Records which connection listens to which channel of the one session. */
export class Subscriptions<Listener> {
  readonly #listeners = new Map<string, Set<Listener>>();

  /** The session ran the changes itself. Returns the SQL that restores the channels of other listeners. */
  apply(listener: Listener, changes: readonly SubscriptionChange[]): string[] {
    for (const { listen, channel } of changes) {
      if (listen) this.#add(listener, channel);
      else this.#remove(listener, channel);
    }
    if (changes.every(({ listen }) => listen)) return [];
    return [...this.#listeners.keys()].map((channel) => `LISTEN ${quoted(channel)}`);
  }

  /** Returns the SQL that ends the session's subscriptions without a remaining listener. */
  removeListener(listener: Listener): string[] {
    const before = [...this.#listeners.keys()];
    this.#remove(listener, '*');
    return before.filter((channel) => !this.#listeners.has(channel)).map((channel) => `UNLISTEN ${quoted(channel)}`);
  }

  listeners(channel: string): Iterable<Listener> {
    return this.#listeners.get(channel) ?? [];
  }

  #add(listener: Listener, channel: string): void {
    const listeners = this.#listeners.get(channel) ?? new Set();
    this.#listeners.set(channel, listeners.add(listener));
  }

  #remove(listener: Listener, channel: string): void {
    const channels = channel === '*' ? [...this.#listeners.keys()] : [channel];
    for (const name of channels) {
      const listeners = this.#listeners.get(name);
      listeners?.delete(listener);
      if (listeners?.size === 0) this.#listeners.delete(name);
    }
  }
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
