import { createServer, type IncomingHttpHeaders, type IncomingMessage, type Server } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { connect, type AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';
import type { Certificate } from '../webhooks/transport/receivers.js';

interface Asked {
  method: string;
  target: string;
  headers: IncomingHttpHeaders;
}

/** A forward proxy that supports only CONNECT and records its requests. It connects every target to this machine. */
export class ConnectProxy {
  readonly asked: Asked[] = [];
  /** The server names (SNI) of TLS connections to the proxy. */
  readonly servernames: unknown[] = [];
  /** The response for a target. Undefined opens the tunnel; `hang` sends no response. */
  answerTo: (target: string) => string | undefined = () => undefined;

  private readonly sockets = new Set<Duplex>();

  private constructor(private readonly server: Server) {
    server.on('connection', (socket: Duplex) => this.keep(socket));
    server.on('connect', (request, socket) => this.connect(request, socket));
    server.on('request', (request, response) => {
      this.note(request);
      response.writeHead(405).end();
    });
  }

  static async start(certificate?: Certificate): Promise<ConnectProxy> {
    const server = certificate ? createSecureServer(certificate) : createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return new ConnectProxy(server);
  }

  /** A value for WEBHOOK_PROXY; `user` may include `:password`. */
  url(user = '', host = '127.0.0.1'): URL {
    const scheme = this.server instanceof createSecureServer().constructor ? 'https' : 'http';
    return new URL(`${scheme}://${user && `${user}@`}${host}:${(this.server.address() as AddressInfo).port}`);
  }

  get targets(): string[] {
    return this.asked.map(({ target }) => target);
  }

  /** Counts one socket for a tunnel that is not open yet, and two for an open one. */
  get openSockets(): number {
    return this.sockets.size;
  }

  closeWays(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  close(): void {
    this.closeWays();
    this.server.close();
  }

  private connect(request: IncomingMessage, near: Duplex): void {
    this.note(request);
    this.keep(near);
    if (near instanceof TLSSocket) this.servernames.push((near as { servername?: unknown }).servername);
    const answer = this.answerTo(request.url ?? '');
    if (answer !== undefined) {
      // The client closes the connection.
      near.resume().on('end', () => near.end());
      if (answer !== 'hang') near.write(answer);
      return;
    }
    const far = connect(Number(request.url?.split(':').at(-1)), '127.0.0.1');
    this.keep(far);
    far.on('error', () => near.end('HTTP/1.1 502 Bad Gateway\r\n\r\n'));
    far.on('connect', () => {
      near.write('HTTP/1.1 200 Connection established\r\nVia: 1.1 proxy\r\n\r\n');
      near.pipe(far).pipe(near);
    });
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const)
      one.on('close', () => other.destroy());
  }

  private note({ method = '', url = '', headers }: IncomingMessage): void {
    this.asked.push({ method, target: url, headers });
  }

  private keep(socket: Duplex): void {
    this.sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => this.sockets.delete(socket));
  }
}
