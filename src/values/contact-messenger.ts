/** What a message says about one host of a client's Notify URLs. */
export interface ContactMessageHost {
  /** Host name and port, as the Notify URL has them: `notify.partner.example:8443`. */
  host: string;
  /** `failing`: it does not accept notifications. `recovered`: it did not, and has accepted one again. */
  state: 'failing' | 'recovered';
  /** When the first of the failed attempts ended: RFC 3339, UTC. */
  since: string;
  /** When it accepted a notification again: RFC 3339, UTC. Null while it fails. */
  recoveredAt: string | null;
  /** Why the last attempt failed, in words. It contains neither a private address nor anything that the receiver sent. */
  error: string;
  /** How many notifications to this host ended FAILED since then; at most 10000 are counted. */
  failed: number;
}

/**
 * A message to the contact of a client: about hosts, a change of the client, or with a link to its portal. It contains nothing
 * of an order. Treat `text` as a secret: whoever opens the link may change the client's secret.
 */
export interface ContactMessage {
  /**
   * The same if a message is sent a second time, because a process ended after it had been sent and before that was
   * recorded. ASCII letters, digits and dashes.
   */
  id: string;
  clientId: string;
  clientName: string;
  contact: string;
  /** One line of printable ASCII. */
  subject: string;
  /** Plain text in English; lines end with a line feed. */
  text: string;
  /** Empty in a message about a change, or with a link. */
  hosts: ContactMessageHost[];
}

/** Sends messages to the contacts of clients. An application implements it to send them its own way. */
export interface ContactMessenger {
  /**
   * Sends one message. If it rejects, or has not resolved after 30 s, the message is sent again later, after a growing pause.
   * `signal` is aborted after these 30 s.
   */
  send(message: ContactMessage, signal: AbortSignal): Promise<void>;
}

/** How long sending one message may take. */
export const SEND_LIMIT_MS = 30_000;
