import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { eventually } from './eventually.js';

export interface Arrival {
  /** When the request's headers had arrived, in milliseconds since 1970. */
  at: number;
  headers: IncomingHttpHeaders;
  rawBody: Buffer;
  /** The order's key, from the body. */
  key: string;
}

/** Decides how an arrival is answered, and sends the response. */
export type Behaviour = (response: ServerResponse, arrival: Arrival, nth: number) => void;

export const answer =
  (status: number): Behaviour =>
  (response) =>
    void response.writeHead(status).end();

/** Answers after a delay. */
export const late =
  (ms: number, status = 200): Behaviour =>
  (response) =>
    void setTimeout(() => response.writeHead(status).end(), ms);

export const hang: Behaviour = () => undefined;

export const reset: Behaviour = (response) => void response.socket?.resetAndDestroy();

/** Answers 200 at once, with a body that never ends. */
export const endless: Behaviour = (response) => {
  response.writeHead(200);
  const timer = setInterval(() => response.write('x'.repeat(1_000)), 5);
  response.on('close', () => clearInterval(timer));
};

export const redirectTo =
  (location: string): Behaviour =>
  (response) =>
    void response.writeHead(302, { location }).end();

/** A real HTTP server that records the requests it receives. */
export class TestReceiver {
  readonly arrivals: Arrival[] = [];
  behaviour: Behaviour = answer(200);

  private readonly server = createServer((request, response) => {
    this.receive(request, response).catch(() => response.destroy());
  });

  /** With 0.0.0.0 it is at every address of this machine, so it can be many hosts. */
  static async start(address = '127.0.0.1'): Promise<TestReceiver> {
    const receiver = new TestReceiver();
    await new Promise<void>((resolve) => receiver.server.listen(0, address, resolve));
    return receiver;
  }

  get url(): string {
    return this.urlAt('127.0.0.1');
  }

  urlAt(host: string): string {
    return `http://${host}:${(this.server.address() as AddressInfo).port}/notify`;
  }

  /** The arrivals of one order, oldest first. */
  of(key: string): Arrival[] {
    return this.arrivals.filter((arrival) => arrival.key === key);
  }

  waitFor(key: string, count = 1): Promise<Arrival[]> {
    return eventually(`${count} arrival(s) of ${key}`, () => (this.of(key).length >= count ? this.of(key) : null));
  }

  private async receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const at = Date.now();
    const rawBody = Buffer.concat(await request.toArray());
    const { data } = JSON.parse(rawBody.toString()) as { data: { key: string } };
    const arrival = { at, headers: request.headers, rawBody, key: data.key };
    this.arrivals.push(arrival);
    this.behaviour(response, arrival, this.of(data.key).length);
  }

  close(): void {
    this.server.close();
    this.server.closeAllConnections();
  }
}
