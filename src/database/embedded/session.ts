import { setImmediate as nextLoop } from 'node:timers/promises';
import type { PGlite } from '@electric-sql/pglite';
import { ProtocolError } from './protocol-error.js';
import { query, readReply, type Reply } from './wire.js';

/** PGlite works in microtasks alone: without a pause, timers and sockets would starve. */
const YIELD_AFTER_MS = 2;

export const DEFAULT_SEARCH_PATH = 'public';

/** PGlite's one session. Whoever calls it holds the turn. */
export class Session {
  #searchPath = DEFAULT_SEARCH_PATH;
  #workedSince = performance.now();

  constructor(private readonly db: Pick<PGlite, 'execProtocolRawStream'>) {}

  async breathe(): Promise<void> {
    if (performance.now() - this.#workedSince < YIELD_AFTER_MS) return;
    await nextLoop();
    this.#workedSince = performance.now();
  }

  async execute(bytes: Buffer): Promise<Reply> {
    const parts: Buffer[] = [];
    // The bytes are a view into PGlite's memory, hence the copy. Its folder needs no syncToFs.
    const onRawData = (part: Uint8Array): void => void parts.push(Buffer.from(part));
    await this.db.execProtocolRawStream(bytes, { syncToFs: false, onRawData });
    return readReply(Buffer.concat(parts));
  }

  /** The first value of the last statement's result. */
  async ask(...statements: string[]): Promise<string> {
    const reply = await this.execute(query(statements.join(';')));
    if (reply.error !== undefined) throw new ProtocolError('XX000', reply.error);
    return reply.firstValue ?? '';
  }

  async useSearchPath(searchPath: string): Promise<void> {
    if (searchPath === this.#searchPath) return;
    await this.ask(`SELECT set_config('search_path', '${searchPath.replaceAll("'", "''")}', false)`);
    this.#searchPath = searchPath;
  }

  /** PGlite does not report changed parameters: ask for the one we keep per connection. */
  async rememberSearchPath(): Promise<string> {
    this.#searchPath = await this.ask('SHOW search_path');
    return this.#searchPath;
  }
}
