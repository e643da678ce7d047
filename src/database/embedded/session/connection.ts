import type { Duplex } from 'node:stream';
import {
  channelOf,
  fatal,
  parseStartupPacket,
  ProtocolError,
  query,
  type Reply,
  startupReply,
  sync,
} from '../protocol/messages.js';
import { MessageReader, PreparedStatements, readBatch, type RequestBatch } from '../protocol/request-batch.js';
import {
  DEFAULT_SEARCH_PATH,
  type Session,
  type SessionQueue,
  type SubscriptionChange,
  subscriptionChangesIn,
  type Subscriptions,
} from './session.js';

/** A listener with more unread notifications than this is disconnected. */
const MAX_BACKLOG_BYTES = 16 * 1024 * 1024;

export interface Shared {
  readonly session: Session;
  readonly queue: SessionQueue<Connection>;
  readonly subscriptions: Subscriptions<Connection>;
  readonly serverVersion: string;
}

/** One client, from its startup packet on. It holds the session from the start of a transaction until its end. */
export class Connection {
  readonly #reader: MessageReader;
  readonly #prepared: PreparedStatements;
  #searchPath = DEFAULT_SEARCH_PATH;
  #searchPathMayHaveChanged = false;
  #pendingChanges: SubscriptionChange[] = [];
  #isBusy = false;
  #running: Promise<unknown> = Promise.resolve();
  #disconnecting: Promise<void> | undefined;

  constructor(
    private readonly stream: Duplex,
    private readonly shared: Shared,
    private readonly id: number,
  ) {
    this.#reader = new MessageReader(stream);
    this.#prepared = new PreparedStatements(`c${id}`);
    stream.on('error', () => stream.destroy());
  }

  async serve(): Promise<void> {
    try {
      if (await this.#handshake()) await this.#serveBatches();
      await this.#disconnect();
      this.stream.end(() => this.stream.destroy());
    } catch (error) {
      const code = error instanceof ProtocolError ? error.code : 'XX000';
      await this.terminate(code, error instanceof Error ? error.message : String(error));
    }
  }

  /** Sends the client the reason and releases what it held, without waiting for the client to read it. */
  terminate(code: string, reason: string): Promise<void> {
    if (this.#disconnecting) return this.#disconnecting;
    this.stream.end(fatal(code, reason), () => this.stream.destroy());
    return this.#disconnect();
  }

  /** Sends no error to an idle client, because the client may be disconnecting at this moment. */
  close(): Promise<void> {
    if (this.#isBusy || this.shared.queue.isHolder(this)) {
      return this.terminate('57P01', 'terminating connection: the embedded database is closing');
    }
    this.stream.end(() => this.stream.destroy());
    return this.#disconnect();
  }

  async #handshake(): Promise<boolean> {
    for (;;) {
      const packet = await this.#reader.nextStartupPacket();
      if (!packet) return false;
      const startup = parseStartupPacket(packet);
      if (startup === 'cancel') return false;
      if (startup !== 'encrypt') {
        this.#searchPath = startup.searchPath ?? DEFAULT_SEARCH_PATH;
        await this.#send(startupReply(this.shared.serverVersion, this.id));
        return true;
      }
      await this.#send(Buffer.from('N'));
    }
  }

  async #serveBatches(): Promise<void> {
    while (!this.#disconnecting) {
      const batch = await readBatch(this.#reader, this.#prepared);
      if (!batch) return;
      this.#isBusy = true;
      const run = this.#execute(batch).finally(() => (this.#isBusy = false));
      this.#running = run.catch(() => undefined);
      const reply = await run;
      if (reply) await this.#send(reply.bytes);
    }
  }

  async #execute(batch: RequestBatch): Promise<Reply | undefined> {
    const { session, queue } = this.shared;
    const alreadyHolds = queue.isHolder(this);
    await queue.acquire(this);
    await session.yieldToEventLoop();
    if (this.#disconnecting) return undefined;
    if (!alreadyHolds) await session.setSearchPath(this.#searchPath);
    const reply = await session.execute(batch.bytes, batch.complete);
    this.#recordChanges(batch, reply);
    if (reply.status === 'I') await this.#finishTransaction(reply);
    else queue.markIdle();
    this.#deliver(reply.notifications);
    return reply;
  }

  #recordChanges(batch: RequestBatch, reply: Reply): void {
    if (reply.error === undefined) this.#pendingChanges.push(...batch.sql.flatMap(subscriptionChangesIn));
    this.#searchPathMayHaveChanged ||= batch.sql.some((sql) => /search_path|\b(?:reset|discard)\s+all\b/i.test(sql));
  }

  async #finishTransaction(reply: Reply): Promise<void> {
    const { session, subscriptions, queue } = this.shared;
    const changes = reply.lastTag === 'ROLLBACK' ? [] : this.#pendingChanges;
    this.#pendingChanges = [];
    const restore = subscriptions.apply(this, changes);
    if (restore.length > 0) await session.queryValue(...restore);
    if (this.#searchPathMayHaveChanged) this.#searchPath = await session.readSearchPath();
    this.#searchPathMayHaveChanged = false;
    queue.release(this);
  }

  #deliver(notifications: readonly Buffer[]): void {
    for (const notification of notifications) {
      for (const listener of this.shared.subscriptions.listeners(channelOf(notification)))
        listener.#notify(notification);
    }
  }

  #notify(notification: Buffer): void {
    if (this.stream.writable) this.stream.write(notification);
    if (this.stream.writableLength > MAX_BACKLOG_BYTES) this.stream.destroy();
  }

  async #send(bytes: Buffer): Promise<void> {
    if (!this.stream.writable || this.stream.write(bytes)) return;
    await new Promise<void>((resolve) => {
      const end = (): void => {
        this.stream.off('drain', end).off('close', end);
        resolve();
      };
      this.stream.on('drain', end).on('close', end);
    });
  }

  #disconnect(): Promise<void> {
    return (this.#disconnecting ??= this.#running.then(() => this.#cleanUp()));
  }

  async #cleanUp(): Promise<void> {
    const { session, subscriptions, queue } = this.shared;
    const unlisten = subscriptions.removeListener(this);
    try {
      // After an error in the extended protocol, Postgres skips all messages up to a Sync.
      if (queue.isHolder(this)) await session.execute(Buffer.concat([sync, query('ROLLBACK')]));
      const statements = [...this.#prepared.clear(), ...unlisten];
      if (statements.length > 0) {
        await queue.acquire(this);
        for (const sql of statements) await session.execute(query(sql));
      }
    } catch {
      // The session is closed or broken; the next client receives that error.
    } finally {
      queue.release(this);
    }
  }
}
