import type { Dispatcher } from 'undici';
import { BlockedAddressError } from './guarded-connector.js';
import { type Headers, type Outcome, type Progress, ResponseSnippet, retryAfterMs, type Verdict } from './outcome.js';
import { ProxyError } from './proxy-tunnel.js';
import type { ReceiverConnection, ReceiverConnections } from './receiver-connections.js';
import { isLocalFault, unreachableReason } from './unreachable-reason.js';

export interface Delivery {
  url: URL;
  headers: Record<string, string>;
  body: Buffer;
}

// The status decides the outcome. The body is only read for the snippet, so it must not hold a worker slot for long.
const BODY_TIMEOUT_MS = 1_000;
const MAX_INFORMATIONAL_RESPONSES = 16;

/** One POST and its response. It always ends in exactly one outcome, within the deadline. */
export class DeliveryExchange implements Dispatcher.DispatchHandler {
  private readonly progress: Progress = { phase: 'connect', address: null };
  /** The outcome at the deadline: a timeout as long as there is no status. */
  private verdict: Verdict = { kind: 'timed-out' };
  private encoding: Headers[string];
  private snippet: ResponseSnippet | null = null;
  private informational = 0;
  private connection!: ReceiverConnection;
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
      const { url, headers, body } = this.delivery;
      this.connection = this.connections.take(url.origin, this.progress);
      this.connection.client.dispatch({ method: 'POST', path: url.pathname + url.search, headers, body }, this);
    });
  }

  /** Called just before the request is written. A process that was paused past the deadline must not send it. */
  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.elapsedMs() < this.timeoutMs) {
      this.progress.phase = 'headers';
      return;
    }
    this.settle(this.verdict);
    controller.abort(new Error('the deadline has passed'));
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: Headers): void {
    if (this.settled) return;
    if (status < 200) {
      this.informational += 1;
      if (this.informational > MAX_INFORMATIONAL_RESPONSES)
        this.settle({ kind: 'unreachable', code: 'answer-not-http', reason: 'too many informational responses' });
      return;
    }
    this.verdict = verdictOfStatus(status, headers);
    this.encoding = headers['content-encoding'];
    this.progress.phase = 'body';
    this.expireIn(Math.min(BODY_TIMEOUT_MS, this.timeoutMs - this.elapsedMs()));
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.settled) return;
    this.snippet ??= new ResponseSnippet(this.encoding);
    if (this.snippet.add(chunk)) this.settle(this.verdict);
  }

  onResponseEnd(): void {
    this.settle(this.verdict, true);
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    this.settle(this.verdict.kind === 'timed-out' ? verdictOfFault(error, this.progress.phase) : this.verdict);
  }

  /** Node runs timers before it reads input. After a pause of this process, it first reads what has arrived. */
  private expireIn(milliseconds: number): void {
    clearTimeout(this.timer);
    const expire = (): unknown => setImmediate(() => this.settle(this.verdict));
    this.timer = setTimeout(expire, Math.max(0, Math.ceil(milliseconds)));
  }

  /** An error is a fault of this process or machine. */
  private settle(verdict: Verdict | Error, reusable = false): void {
    if (this.settled) return;
    this.settled = true;
    clearTimeout(this.timer);
    const snippet = this.snippet?.text() ?? '';
    const durationMs = Math.ceil(this.elapsedMs());
    this.connections.release(this.connection, reusable);
    if (verdict instanceof Error) this.reject(verdict);
    else this.resolve({ durationMs, ...this.progress, snippet, ...verdict });
  }

  private elapsedMs(): number {
    return performance.now() - this.startedAt;
  }
}

function verdictOfStatus(status: number, headers: Headers): Verdict {
  if (status >= 200 && status < 300) return { kind: 'delivered', status };
  return { kind: 'refused', status, retryAfterMs: retryAfterMs(status, headers) };
}

/** The error itself if it is a fault of this process or machine. */
function verdictOfFault(error: Error, phase: Progress['phase']): Verdict | Error {
  if (error instanceof BlockedAddressError) return { kind: 'blocked', address: error.address };
  if (isLocalFault(error)) return error;
  if (error instanceof ProxyError) return { kind: 'unreachable', code: 'proxy-failed', reason: error.message };
  const [code, reason] = unreachableReason(error, phase);
  return { kind: 'unreachable', code, reason };
}
