import { once, setMaxListeners } from 'node:events';
import { type Duplex, duplexPair } from 'node:stream';
import type { PGlite } from '../folder/data-folder.js';
import { Connection, type Shared } from './connection.js';
import { Session, SessionQueue, Subscriptions } from './session.js';

const IDLE_TIMEOUT_MS = 10_000;
const CLOSE_GRACE_MS = 1_000;

/** Lets many PostgreSQL clients share PGlite's one session, one transaction at a time. */
export class Multiplexer {
  readonly #connections = new Set<Connection>();
  readonly #streams = new Set<Duplex>();
  #count = 0;
  #closed = false;

  private constructor(private readonly shared: Shared) {}

  static async over(db: Pick<PGlite, 'execProtocolRawStream'>, idleTimeoutMs = IDLE_TIMEOUT_MS): Promise<Multiplexer> {
    const session = new Session(db);
    const queue = new SessionQueue<Connection>(idleTimeoutMs, (holder) => {
      void holder.terminate('25P03', 'terminating connection: idle in a transaction while other connections wait');
    });
    const serverVersion = await session.queryValue('SHOW server_version');
    return new Multiplexer({ session, queue, subscriptions: new Subscriptions(), serverVersion });
  }

  attach(stream: Duplex): void {
    if (this.#closed) return void stream.destroy();
    const connection = new Connection(stream, this.shared, ++this.#count);
    this.#connections.add(connection);
    this.#streams.add(stream);
    stream.once('close', () => this.#streams.delete(stream));
    void connection.serve().finally(() => this.#connections.delete(connection));
  }

  /** An in-process connection for pg's `stream` option. */
  createStream(): Duplex {
    const [client, server] = duplexPair();
    client.allowHalfOpen = false;
    client.once('close', () => server.destroy());
    server.once('close', () => client.destroy());
    this.attach(server);
    return Object.assign(client, socketMethods(client));
  }

  get hasCrashed(): boolean {
    return this.shared.session.hasCrashed;
  }

  /** Rolls back open transactions and ends every connection. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.allSettled([...this.#connections].map((connection) => connection.close()));
  }

  /** Gives clients up to CLOSE_GRACE_MS to read their last message. */
  async destroyStreams(): Promise<void> {
    const signal = AbortSignal.timeout(CLOSE_GRACE_MS);
    // Each connection listens to it; without this Node warns of a leak at the eleventh.
    setMaxListeners(0, signal);
    await Promise.allSettled([...this.#streams].map((stream) => once(stream, 'close', { signal })));
    for (const stream of this.#streams) stream.destroy();
  }
}

/** The methods of net.Socket that pg calls. */
function socketMethods(stream: Duplex): Record<string, () => Duplex> {
  const noop = (): Duplex => stream;
  const connect = (): Duplex => {
    process.nextTick(() => stream.emit('connect'));
    return stream;
  };
  return { connect, setNoDelay: noop, setKeepAlive: noop, setTimeout: noop, ref: noop, unref: noop };
}
