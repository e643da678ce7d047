import { parseHttpUrl } from '../../values/notify-url.js';
import { DeliveryExchange } from './delivery-exchange.js';
import { GuardedConnector, type GuardOptions } from './guarded-connector.js';
import type { Outcome } from './outcome.js';
import { ReceiverConnections } from './receiver-connections.js';

export type { Outcome, Phase } from './outcome.js';

export interface SignedRequest {
  url: string;
  headers: Record<string, string>;
  body: Buffer;
}

export interface SenderOptions extends GuardOptions {
  /** From the start, including DNS, to the end of the response headers (specification 7: 30 s). */
  timeoutMs: number;
  /** The maximum number of concurrent requests to one origin. Others wait, within their own deadline. Default: no limit. */
  connectionsPerHost?: number;
}

/** Posts signed notifications. Faults of the receiver or the network are outcomes; only Usher's own faults are thrown. */
export class NotificationSender {
  private readonly connections: ReceiverConnections;
  private readonly running = new Set<Promise<Outcome>>();
  private closed = false;

  constructor(private readonly options: SenderOptions) {
    this.connections = new ReceiverConnections(new GuardedConnector(options), options.connectionsPerHost);
  }

  /**
   * One POST, never repeated: if the connection is lost, the receiver may already have processed the request.
   * @throws NotifyUrlError when the URL is not absolute http(s), and on headers that HTTP cannot carry
   */
  async send(request: SignedRequest): Promise<Outcome> {
    const url = parseHttpUrl(request.url);
    if (this.closed) throw new Error('The notification sender is closed.');
    const { headers, body } = request;
    const sending = new DeliveryExchange({ url, headers, body }, this.connections, this.options.timeoutMs).run();
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
    this.connections.closeIdle();
  }
}
