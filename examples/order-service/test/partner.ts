import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { type Notification, verifyNotification, type VerifyOptions } from 'nest-usher/receiver';

type Arrival = Pick<VerifyOptions, 'rawBody' | 'headers'>;

/** Waits until `find` answers. It looks every 50 ms for 30 s. */
export async function eventually<T>(what: string, find: () => T | undefined | Promise<T | undefined>): Promise<T> {
  for (let tries = 0; tries < 600; tries += 1) {
    const found = await find();
    if (found !== undefined) return found;
    await pause(50);
  }
  throw new Error(`${what} did not happen within 30 s`);
}

/** The server of an API client. It answers 200 at once and keeps what arrived. */
export class Partner {
  private readonly arrivals: Arrival[] = [];

  private constructor(private readonly server: Server) {}

  static async start(): Promise<Partner> {
    const server = createServer((request, response) => {
      void request.toArray().then((chunks: Buffer[]) => {
        partner.arrivals.push({ rawBody: Buffer.concat(chunks), headers: request.headers });
        response.end();
      });
    }).listen(0, '127.0.0.1');
    const partner = new Partner(server);
    await once(server, 'listening');
    return partner;
  }

  get notifyUrl(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/notify`;
  }

  /** The number of notifications whose body has this text. */
  count(text: string): number {
    return this.arrivals.filter(({ rawBody }) => rawBody.toString().includes(text)).length;
  }

  /** The notification whose body has this text, after its signature was verified with `secret`. */
  async notificationOf(text: string, secret: string): Promise<Notification> {
    const arrival = await eventually(`the notification of ${text}`, () =>
      this.arrivals.find(({ rawBody }) => rawBody.toString().includes(text)),
    );
    return verifyNotification({ ...arrival, secret });
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    this.server.close();
    await once(this.server, 'close');
  }
}
