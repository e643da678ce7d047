import { parseHttpUrl } from '../../values/urls/notify-url.js';
import type { GuardOptions } from './guarded-connector.js';
import type { Outcome } from './outcome.js';

export interface SignedRequest {
  url: string;
  headers: Record<string, string>;
  body: Buffer;
  /** For {@link WebhookAttempt.signedWith}. */
  signedWith?: string;
}

export interface SenderOptions extends GuardOptions {
  /** From the start, including DNS, to the end of the response headers (specification 7: 30 s). */
  timeoutMs: number;
  /** Headers that every request carries besides its own. Default: none. */
  extraHeaders?: () => Record<string, string>;
}

/** Posts signed notifications. Faults of the receiver or the network are outcomes; only Usher's own faults are thrown. */
export class NotificationSender {
  private loading: ReturnType<typeof loadTransport> | undefined;
  private readonly running = new Set<Promise<Outcome>>();
  private closed = false;

  constructor(private readonly options: SenderOptions) {}

  /** Loads the HTTP client, which processes without deliveries rarely need. Otherwise the first request loads it. */
  prepare(): ReturnType<typeof loadTransport> {
    return (this.loading ??= loadTransport(this.options));
  }

  /**
   * One POST, never repeated: if the connection is lost, the receiver may already have processed the request.
   * @throws NotifyUrlError when the URL is not absolute http(s), and on headers that HTTP cannot carry
   */
  async send(request: SignedRequest): Promise<Outcome> {
    const url = parseHttpUrl(request.url);
    const startedAt = performance.now();
    const { DeliveryExchange, connections } = await this.prepare();
    if (this.closed) throw new Error('The notification sender is closed.');
    const headers = { ...request.headers, ...this.options.extraHeaders?.() };
    const delivery = { url, headers, body: request.body };
    const sending = new DeliveryExchange(delivery, connections, this.options.timeoutMs, startedAt).run();
    this.running.add(sending);
    try {
      return await sending;
    } finally {
      this.running.delete(sending);
    }
  }

  /** Waits for the running requests, which end by their deadline, and closes all connections. */
  async close(): Promise<void> {
    this.closed = true;
    await Promise.allSettled(this.running);
    (await this.loading)?.connections.closeIdle();
  }
}

async function loadTransport(options: GuardOptions) {
  const { DeliveryExchange } = await import('./delivery-exchange.js');
  const { ReceiverConnections } = await import('./receiver-connections.js');
  return { DeliveryExchange, connections: new ReceiverConnections(options) };
}
