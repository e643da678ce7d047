import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A TCP proxy to a server. Tests can cut it, restore it, redirect it, or make its connections silent. */
export class TcpProxy {
  private readonly sockets = new Set<Socket>();
  private isCut = false;
  /** Connections that were tried while it was cut. */
  refused = 0;
  private readonly server = createServer((near) => this.join(near));

  private constructor(private target: URL) {}

  static async to(target: string): Promise<TcpProxy> {
    const proxy = new TcpProxy(new URL(target));
    await new Promise<void>((resolve) => proxy.server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  /** Returns the same URL with the host and port of this proxy. */
  through(address: string): string {
    const url = new URL(address);
    url.hostname = '127.0.0.1';
    url.port = String((this.server.address() as AddressInfo).port);
    return url.href;
  }

  cut(): void {
    this.isCut = true;
    for (const socket of this.sockets) socket.resetAndDestroy();
  }

  /** Keeps open connections open but passes no more data, like a firewall that dropped them. New ones work. */
  silence(): void {
    for (const socket of this.sockets) socket.unpipe().pause();
  }

  restore(): void {
    this.isCut = false;
  }

  /** New connections go to another server; open ones stay where they are. */
  redirect(target: string): void {
    this.target = new URL(target);
  }

  close(): void {
    this.cut();
    this.server.close();
  }

  private join(near: Socket): void {
    if (this.isCut) {
      this.refused += 1;
      near.resetAndDestroy();
      return;
    }
    const far = connect(Number(this.target.port), this.target.hostname);
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      this.sockets.add(socket);
      socket.on('error', () => other.destroy());
      socket.on('close', () => {
        this.sockets.delete(socket);
        other.destroy();
      });
      socket.pipe(other);
    }
  }
}
