import { once } from 'node:events';
import { type Duplex, duplexPair } from 'node:stream';
import { setTimeout } from 'node:timers/promises';
import type { PGlite } from '@electric-sql/pglite';
import { Connection, type Shared } from './connection.js';
import { Session } from './session.js';
import { Subscriptions } from './subscriptions.js';
import { Turns } from './turns.js';

const IDLE_LIMIT_MS = 10_000;
const GRACE_MS = 1_000;

/** Lets many clients of the PostgreSQL wire protocol share PGlite's one session, a transaction at a time. */
export class Multiplexer {
  readonly #connections = new Set<Connection>();
  readonly #streams = new Set<Duplex>();
  #count = 0;
  #closed = false;

  private constructor(private readonly shared: Shared) {}

  static async over(db: Pick<PGlite, 'execProtocolRawStream'>, idleLimitMs = IDLE_LIMIT_MS): Promise<Multiplexer> {
    const session = new Session(db);
    const turns = new Turns<Connection>(idleLimitMs, (holder) => {
      void holder.end('25P03', 'terminating connection: idle in a transaction while others wait');
    });
    const serverVersion = await session.ask('SHOW server_version');
    return new Multiplexer({ session, turns, subscriptions: new Subscriptions(), serverVersion });
  }

  /** Serves the PostgreSQL client at the other end. */
  attach(stream: Duplex): void {
    if (this.#closed) return void stream.destroy();
    const connection = new Connection(stream, this.shared, ++this.#count);
    this.#connections.add(connection);
    this.#streams.add(stream);
    stream.once('close', () => this.#streams.delete(stream));
    void connection.serve().finally(() => this.#connections.delete(connection));
  }

  /** A connection for pg's `stream` option. */
  stream(): Duplex {
    const [client, server] = duplexPair();
    client.allowHalfOpen = false;
    client.once('close', () => server.destroy());
    server.once('close', () => client.destroy());
    this.attach(server);
    return Object.assign(client, socketSurface(client));
  }

  /** Rolls back what is open and ends every connection. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.allSettled([...this.#connections].map((connection) => connection.close()));
  }

  /** Lets clients read their last message, within reason. */
  async endStreams(): Promise<void> {
    const timer = new AbortController();
    const closed = [...this.#streams].map((stream) => once(stream, 'close'));
    const grace = setTimeout(GRACE_MS, undefined, { signal: timer.signal }).catch(() => undefined);
    await Promise.race([Promise.allSettled(closed), grace]);
    timer.abort();
    for (const stream of this.#streams) stream.destroy();
  }
}

/** What pg calls on a net.Socket. */
function socketSurface(stream: Duplex): Record<string, () => Duplex> {
  const nothing = (): Duplex => stream;
  const connect = (): Duplex => {
    process.nextTick(() => stream.emit('connect'));
    return stream;
  };
  return { connect, setNoDelay: nothing, setKeepAlive: nothing, setTimeout: nothing, ref: nothing, unref: nothing };
}
