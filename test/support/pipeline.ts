import { connect, type Socket } from 'node:net';

export interface PipelinedRequest {
  method?: string;
  path: string;
  headers?: Record<string, string>;
  body?: string;
}

/** One connection on which requests are sent without waiting for responses. */
export class Pipeline {
  /** The statuses of the responses so far, in the order of the requests. */
  readonly statuses: number[] = [];
  private text = '';
  private listeners: (() => void)[] = [];

  private constructor(private readonly socket: Socket) {
    socket.on('data', (chunk: Buffer) => this.read(chunk.toString('latin1')));
    socket.on('error', () => undefined);
    socket.on('close', () => this.tell());
  }

  static open(url: string): Promise<Pipeline> {
    const { hostname, port } = new URL(url);
    return new Promise((resolve, reject) => {
      const socket = connect({ host: hostname, port: Number(port) }, () => resolve(new Pipeline(socket)));
      socket.once('error', reject);
    });
  }

  /** Sends all requests at once. */
  send(requests: PipelinedRequest[]): void {
    this.socket.write(requests.map(textOf).join(''), 'latin1');
  }

  /** Waits until this many responses have arrived. Rejects if the server closes the connection before. */
  async responses(count: number): Promise<number[]> {
    while (this.statuses.length < count) {
      if (this.socket.destroyed) throw new Error(`closed after ${this.statuses.length} of ${count} responses`);
      await new Promise<void>((resolve) => this.listeners.push(resolve));
    }
    return this.statuses;
  }

  close(): void {
    this.socket.destroy();
  }

  private read(chunk: string): void {
    this.text += chunk;
    for (;;) {
      const end = this.text.indexOf('\r\n\r\n');
      if (end < 0) break;
      const head = this.text.slice(0, end);
      const length = Number(/^content-length: (\d+)/im.exec(head)?.[1] ?? 0);
      if (this.text.length < end + 4 + length) break;
      this.statuses.push(Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1]));
      this.text = this.text.slice(end + 4 + length);
    }
    this.tell();
  }

  private tell(): void {
    for (const listener of this.listeners.splice(0)) listener();
  }
}

function textOf({ method = 'POST', path, headers = {}, body = '' }: PipelinedRequest): string {
  const all = { Host: 'localhost', 'Content-Length': String(Buffer.byteLength(body)), ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`);
  return [`${method} ${path} HTTP/1.1`, ...lines, '', body].join('\r\n');
}
