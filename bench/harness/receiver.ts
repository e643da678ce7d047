import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { atEnd } from './cleanup.js';

export interface Receipt {
  headers: IncomingHttpHeaders;
  body: string;
  /** By `performance.now()`. */
  at: number;
}

/** A receiver on this machine that answers 200 after some milliseconds, or never. It ends with its row. */
export class Receiver {
  /** Called with every notification. */
  onReceipt: (receipt: Receipt) => void = () => undefined;

  private constructor(private readonly port: number) {}

  static async start(answers: number | 'never' = 0): Promise<Receiver> {
    const server = createServer((request, response) => {
      const at = performance.now();
      let body = '';
      request.setEncoding('utf8').on('data', (text: string) => void (body += text));
      request.once('end', () => {
        if (answers === 0) response.end();
        else if (answers !== 'never') setTimeout(() => response.end(), answers);
        receiver.onReceipt({ headers: request.headers, body, at });
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', 4_096, resolve));
    const receiver = new Receiver((server.address() as AddressInfo).port);
    atEnd(() => {
      server.closeAllConnections();
      server.close();
    });
    return receiver;
  }

  /** The whole network 127.0.0.0/8 is this machine, so its addresses can be many hosts. */
  url(host = '127.0.0.1'): string {
    return `http://${host}:${this.port}/notify`;
  }

  /** The next notification. */
  next(): Promise<Receipt> {
    return new Promise((resolve) => (this.onReceipt = resolve));
  }

  /** Resolves with the moment at which `count` further notifications have arrived. */
  arrivalOf(count: number): Promise<number> {
    let left = count;
    return new Promise((resolve) => {
      this.onReceipt = ({ at }) => {
        left -= 1;
        if (left === 0) resolve(at);
      };
    });
  }
}
