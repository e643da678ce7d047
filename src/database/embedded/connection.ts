import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import { MessageReader } from './message-reader.js';
import { PreparedStatements } from './prepared-statements.js';
import { ProtocolError } from './protocol-error.js';
import { DEFAULT_SEARCH_PATH, type Session } from './session.js';
import { readStartup } from './startup.js';
import { type SubscriptionChange, subscriptionChangesIn, type Subscriptions } from './subscriptions.js';
import type { Turns } from './turns.js';
import { readUnit, type Unit } from './unit.js';
import { channelOf, fatal, int32, message, parameterStatus, query, readyForQuery, type Reply, sync } from './wire.js';

/** A listener that leaves this much unread is ended. */
const BACKLOG_LIMIT = 16 * 1024 * 1024;

/** What all connections share. */
export interface Shared {
  readonly session: Session;
  readonly turns: Turns<Connection>;
  readonly subscriptions: Subscriptions<Connection>;
  readonly serverVersion: string;
}

/** One client, from its startup packet to its end. It holds the session from the start of a transaction to its end. */
export class Connection {
  readonly #reader: MessageReader;
  readonly #prepared: PreparedStatements;
  #searchPath = DEFAULT_SEARCH_PATH;
  #searchPathTouched = false;
  #pendingChanges: SubscriptionChange[] = [];
  #isBusy = false;
  #running: Promise<unknown> = Promise.resolve();
  #leaving: Promise<void> | undefined;

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
      if (await this.#startUp()) await this.#serveUnits();
      await this.#leave();
      this.stream.end(() => this.stream.destroy());
    } catch (error) {
      const code = error instanceof ProtocolError ? error.code : 'XX000';
      await this.end(code, error instanceof Error ? error.message : String(error));
    }
  }

  /** Tells the client why, and gives back what it held; never waits for the client. */
  end(code: string, reason: string): Promise<void> {
    if (this.#leaving) return this.#leaving;
    this.stream.end(fatal(code, reason), () => this.stream.destroy());
    return this.#leave();
  }

  /** Ends it without a word if it has nothing under way: its client may be saying goodbye at this moment. */
  close(): Promise<void> {
    if (this.#isBusy || this.shared.turns.holds(this)) {
      return this.end('57P01', 'terminating connection: the embedded database is closing');
    }
    this.stream.end(() => this.stream.destroy());
    return this.#leave();
  }

  async #startUp(): Promise<boolean> {
    for (;;) {
      const packet = await this.#reader.startup();
      if (!packet) return false;
      const startup = readStartup(packet);
      if (startup.kind === 'cancel') return false;
      if (startup.kind === 'start') {
        this.#searchPath = startup.searchPath ?? DEFAULT_SEARCH_PATH;
        await this.#send(this.#welcome());
        return true;
      }
      await this.#send(Buffer.from('N'));
    }
  }

  #welcome(): Buffer {
    const parameters = {
      server_version: this.shared.serverVersion,
      server_encoding: 'UTF8',
      client_encoding: 'UTF8',
      DateStyle: 'ISO, MDY',
      TimeZone: 'UTC',
      integer_datetimes: 'on',
      standard_conforming_strings: 'on',
    };
    const statuses = Object.entries(parameters).map(([name, value]) => parameterStatus(name, value));
    const key = message('K', Buffer.concat([int32(this.id), int32(0)]));
    return Buffer.concat([message('R', int32(0)), ...statuses, key, readyForQuery]);
  }

  async #serveUnits(): Promise<void> {
    while (!this.#leaving) {
      const unit = await readUnit(this.#reader, this.#prepared);
      if (!unit) return;
      this.#isBusy = true;
      const run = this.#run(unit).finally(() => (this.#isBusy = false));
      this.#running = run.catch(() => undefined);
      const reply = await run;
      if (reply) await this.#send(reply.bytes);
    }
  }

  async #run(unit: Unit): Promise<Reply | undefined> {
    const { session, turns } = this.shared;
    const isMine = turns.holds(this);
    await turns.take(this);
    await session.breathe();
    if (this.#leaving) return undefined;
    if (!isMine) await session.useSearchPath(this.#searchPath);
    const reply = await session.execute(unit.bytes);
    if (unit.complete && !reply.status) throw new Error('the embedded database gave no answer');
    this.#note(unit, reply);
    if (reply.status === 'I') await this.#finishTransaction(reply);
    else turns.rest(this);
    this.#deliver(reply.notifications);
    return reply;
  }

  #note(unit: Unit, reply: Reply): void {
    if (reply.error === undefined) this.#pendingChanges.push(...unit.sql.flatMap(subscriptionChangesIn));
    this.#searchPathTouched ||= unit.sql.some((sql) => /search_path|\b(?:reset|discard)\s+all\b/i.test(sql));
  }

  async #finishTransaction(reply: Reply): Promise<void> {
    const { session, subscriptions, turns } = this.shared;
    const changes = reply.lastTag === 'ROLLBACK' ? [] : this.#pendingChanges;
    this.#pendingChanges = [];
    const repair = subscriptions.apply(this, changes);
    if (repair.length > 0) await session.ask(...repair);
    if (this.#searchPathTouched) this.#searchPath = await session.rememberSearchPath();
    this.#searchPathTouched = false;
    turns.give(this);
  }

  #deliver(notifications: readonly Buffer[]): void {
    for (const notification of notifications) {
      for (const listener of this.shared.subscriptions.listeners(channelOf(notification)))
        listener.#notify(notification);
    }
  }

  #notify(notification: Buffer): void {
    if (this.stream.writable) this.stream.write(notification);
    if (this.stream.writableLength > BACKLOG_LIMIT) this.stream.destroy();
  }

  async #send(bytes: Buffer): Promise<void> {
    if (!this.stream.writable || this.stream.write(bytes)) return;
    const waiting = new AbortController();
    const { signal } = waiting;
    const settled = [once(this.stream, 'drain', { signal }), once(this.stream, 'close', { signal })];
    await Promise.race(settled).catch(() => undefined);
    waiting.abort();
    await Promise.allSettled(settled);
  }

  #leave(): Promise<void> {
    this.#leaving ??= this.#running.then(() => this.#giveBack());
    return this.#leaving;
  }

  async #giveBack(): Promise<void> {
    const { session, subscriptions, turns } = this.shared;
    const orphans = subscriptions.leave(this);
    try {
      // A Sync first: after an error in the extended protocol Postgres skips everything up to it.
      if (turns.holds(this)) await session.execute(Buffer.concat([sync, query('ROLLBACK')]));
      const tidy = [...this.#prepared.forget(), ...orphans];
      if (tidy.length > 0) {
        await turns.take(this);
        for (const sql of tidy) await session.execute(query(sql));
      }
    } catch {
      // The session is closed or broken: whoever comes next is told.
    } finally {
      turns.give(this);
    }
  }
}
