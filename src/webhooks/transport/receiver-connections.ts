import { type buildConnector, Client } from 'undici';
import { GuardedConnector, type GuardOptions } from './guarded-connector.js';
import type { Progress } from './outcome.js';
import type { ConnectionAttempt } from './proxy-tunnel.js';
import type { Socket } from 'node:net';

const IDLE_MS = 4_000;
const MAX_IDLE_CONNECTIONS = 256;
const MAX_RESPONSE_HEADER_BYTES = 16 * 1024;
// Limits the lifetime of a connection, so that a new address of the receiver is used even under constant load.
const REQUESTS_PER_CONNECTION = 1_000;

/** One HTTP/1.1 connection. One attempt at a time uses it, so every event on it belongs to that attempt. */
export class ReceiverConnection {
  readonly client: Client;
  private readonly attempt: ConnectionAttempt = {
    progress: { phase: 'dns', address: null },
    socket: null,
    isCancelled: false,
  };
  private readonly continueResponses = new ContinueResponses();
  private address: string | null = null;

  constructor(
    readonly origin: string,
    connector: GuardedConnector,
    onDisconnect: (connection: ReceiverConnection) => void,
  ) {
    this.client = new Client(origin, {
      connect: (target, callback) =>
        void this.connect(connector, target).then(
          (socket) => callback(null, socket),
          (error: Error) => callback(error, null),
        ),
      headersTimeout: 0,
      bodyTimeout: 0,
      maxHeaderSize: MAX_RESPONSE_HEADER_BYTES,
      maxRequestsPerClient: REQUESTS_PER_CONNECTION,
      keepAliveTimeout: IDLE_MS,
      // A receiver's Keep-Alive header may shorten this time but not extend it.
      keepAliveMaxTimeout: IDLE_MS,
    });
    this.client.on('disconnect', () => onDisconnect(this));
  }

  /** From now on the connection reports its progress to this attempt. */
  assignTo(progress: Progress): void {
    progress.address = this.address;
    this.attempt.progress = progress;
    this.continueResponses.expectResponse();
  }

  destroy(): void {
    this.attempt.isCancelled = true;
    this.attempt.socket?.destroy();
    void this.client.destroy();
  }

  private async connect(connector: GuardedConnector, target: buildConnector.Options): Promise<Socket> {
    const socket = await connector.open(this.attempt, target);
    this.address = this.attempt.progress.address;
    this.continueResponses.replaceOn(socket);
    return socket;
  }
}

/** Keep-alive connections, the most recently used first. */
export class ReceiverConnections {
  private readonly idle: ReceiverConnection[] = [];
  private readonly connector: GuardedConnector;

  constructor(options: GuardOptions) {
    this.connector = new GuardedConnector(options);
  }

  /** A connection for one attempt, which it reports its progress to. The attempt releases it once. */
  take(origin: string, progress: Progress): ReceiverConnection {
    const index = this.idle.findLastIndex((connection) => connection.origin === origin);
    const idle = index < 0 ? undefined : this.idle.splice(index, 1)[0];
    const connection = idle ?? new ReceiverConnection(origin, this.connector, (closed) => this.forget(closed));
    connection.assignTo(progress);
    return connection;
  }

  release(connection: ReceiverConnection, reusable: boolean): void {
    if (!reusable) return connection.destroy();
    this.idle.push(connection);
    if (this.idle.length > MAX_IDLE_CONNECTIONS) this.idle.shift()?.destroy();
  }

  closeIdle(): void {
    for (const connection of this.idle.splice(0)) connection.destroy();
  }

  private forget(connection: ReceiverConnection): void {
    const index = this.idle.indexOf(connection);
    if (index < 0) return;
    this.idle.splice(index, 1);
    connection.destroy();
  }
}

const STATUS_LINE_START = 'HTTP/1.1 100'.length;
const INFORMATIONAL = /^HTTP\/1\.1 1\d\d$/;
const BLANK_LINE = '\r\n\r\n';

/**
 * Lets undici accept a "100 Continue" that was not requested. A client must ignore it (RFC 9110 §15.2), but undici closes
 * the connection. So undici reads 102 in its place, which it reports as it does any other informational response.
 */
export class ContinueResponses {
  private statusLine = '';
  private matched = 0;
  private isFinalResponse = true;

  /** Called before each request on the connection. */
  expectResponse(): void {
    this.isFinalResponse = false;
    this.nextHead();
  }

  /** From now on undici reads the changed bytes. */
  replaceOn(socket: Socket): void {
    const read = socket.read.bind(socket) as (size?: number) => Buffer | null;
    socket.read = (size?: number) => {
      const chunk = read(size);
      if (chunk !== null) this.replaceIn(chunk);
      return chunk;
    };
  }

  /** A head may come in several chunks, so this walks byte by byte, up to the status of the final response. */
  private replaceIn(chunk: Buffer): void {
    for (let at = 0; at < chunk.length && !this.isFinalResponse; at += 1) {
      if (this.statusLine.length < STATUS_LINE_START) this.readStatus(chunk, at);
      else this.readHeader(chunk[at]);
    }
  }

  private readStatus(chunk: Buffer, at: number): void {
    this.statusLine += String.fromCharCode(chunk.readUInt8(at));
    if (this.statusLine.length < STATUS_LINE_START) return;
    this.isFinalResponse = !INFORMATIONAL.test(this.statusLine);
    if (!this.isFinalResponse && this.statusLine.endsWith('100')) chunk.write('2', at);
  }

  private readHeader(byte: number | undefined): void {
    if (byte === BLANK_LINE.charCodeAt(this.matched)) this.matched += 1;
    else this.matched = byte === BLANK_LINE.charCodeAt(0) ? 1 : 0;
    if (this.matched === BLANK_LINE.length) this.nextHead();
  }

  private nextHead(): void {
    this.statusLine = '';
    this.matched = 0;
  }
}
