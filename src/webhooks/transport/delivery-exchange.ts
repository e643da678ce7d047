import type { Dispatcher } from 'undici';
import { BlockedAddressError } from './guarded-connector.js';
import {
  contentEncoding,
  type Outcome,
  type Progress,
  ResponseSnippet,
  retryAfterMs,
  type Verdict,
} from './outcome.js';
import { ProxyError } from './proxy-tunnel.js';
import type { ConnectionRequest, ReceiverConnection, ReceiverConnections } from './receiver-connections.js';
import { isLocalFault, unreachableReason, type UnreachableReason } from './unreachable-reason.js';

export interface Delivery {
  url: URL;
  headers: Record<string, string>;
  body: Buffer;
}

// The status decides the outcome. The body is only read for the snippet, so it must not hold a worker slot for long.
const BODY_TIMEOUT_MS = 1_000;
const MAX_INFORMATIONAL_RESPONSES = 16;

/** One POST and its response. It always ends in exactly one outcome, within the deadline. */
export class DeliveryExchange implements ConnectionRequest, Dispatcher.DispatchHandler {
  readonly progress: Progress = { phase: 'connect', address: null };
  private connection: ReceiverConnection | null = null;
  private snippet = new ResponseSnippet('');
  private status = 0;
  private retryAfterMs = 0;
  private informational = 0;
  private timer: NodeJS.Timeout | undefined;
  private settled = false;
  private resolve!: (outcome: Outcome) => void;
  private reject!: (error: Error) => void;

  constructor(
    private readonly delivery: Delivery,
    private readonly connections: ReceiverConnections,
    private readonly timeoutMs: number,
    /** From when the timeout counts, on the monotonic clock. */
    private readonly startedAt = performance.now(),
  ) {}

  run(): Promise<Outcome> {
    return new Promise<Outcome>((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
      this.expireIn(this.timeoutMs - this.elapsedMs());
      this.connections.take(this.delivery.url.origin, this);
    });
  }

  start(connection: ReceiverConnection): void {
    const { url, headers, body } = this.delivery;
    this.connection = connection;
    connection.client.dispatch({ method: 'POST', path: url.pathname + url.search, headers, body }, this);
  }

  /** Called just before the request is written. A process that was paused past the deadline must not send it. */
  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.elapsedMs() < this.timeoutMs) {
      this.progress.phase = 'headers';
      return;
    }
    this.settle({ kind: 'timed-out' }, false);
    controller.abort(new Error('the deadline has passed'));
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    if (this.settled) return;
    if (status < 200) {
      this.informational += 1;
      if (this.informational > MAX_INFORMATIONAL_RESPONSES)
        this.unreachable(['answer-not-http', 'too many informational responses']);
      return;
    }
    this.status = status;
    this.retryAfterMs = retryAfterMs(status, headers);
    this.progress.phase = 'body';
    this.snippet = new ResponseSnippet(contentEncoding(headers['content-encoding']));
    this.expireIn(Math.min(BODY_TIMEOUT_MS, this.timeoutMs - this.elapsedMs()));
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (!this.settled && this.snippet.add(chunk)) this.answered(false);
  }

  onResponseEnd(): void {
    this.answered(true);
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    if (this.status > 0) this.answered(false);
    else if (error instanceof BlockedAddressError) this.blocked(error.address);
    else if (isLocalFault(error)) this.fail(error);
    else if (error instanceof ProxyError) this.unreachable(['proxy-failed', error.message]);
    else this.unreachable(unreachableReason(error, this.progress.phase));
  }

  private expireIn(milliseconds: number): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.deadline(), Math.max(0, Math.ceil(milliseconds)));
  }

  private deadline(): void {
    // Timers run before input. After a pause of this process, read first what had arrived before the deadline.
    if (this.connection !== null) setImmediate(() => this.expire());
    else this.expire();
  }

  private expire(): void {
    if (this.status > 0) this.answered(false);
    else this.settle({ kind: 'timed-out' }, false);
  }

  private answered(complete: boolean): void {
    const { status, retryAfterMs } = this;
    const isDelivered = status >= 200 && status < 300;
    this.settle(isDelivered ? { kind: 'delivered', status } : { kind: 'refused', status, retryAfterMs }, complete);
  }

  private blocked(address: string): void {
    this.progress.address = address;
    this.settle({ kind: 'blocked', address }, false);
  }

  private unreachable([code, reason]: UnreachableReason): void {
    this.settle({ kind: 'unreachable', code, reason }, false);
  }

  private settle(verdict: Verdict, reusable: boolean): void {
    if (this.settled) return;
    const facts = { durationMs: Math.ceil(this.elapsedMs()), ...this.progress, snippet: this.snippet.text() };
    this.finish(reusable);
    this.resolve({ ...facts, ...verdict });
  }

  private fail(error: Error): void {
    if (this.settled) return;
    this.finish(false);
    this.reject(error);
  }

  private finish(reusable: boolean): void {
    this.settled = true;
    clearTimeout(this.timer);
    if (this.connection === null) this.connections.withdraw(this.delivery.url.origin, this);
    else this.connections.release(this.connection, reusable);
  }

  private elapsedMs(): number {
    return performance.now() - this.startedAt;
  }
}
