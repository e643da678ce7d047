import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';

/**
 * How many requests of one connection run at the same time. HTTP/1.1 lets a client send any number of requests without
 * waiting for responses (RFC 9112 §9.3.2), and Node starts all of them at once.
 */
export const MAX_RUNNING_REQUESTS = 4;

/** The requests of one connection, in the order in which they arrived. */
class Connection {
  private running = 0;
  private readonly waiting: (() => void)[] = [];

  constructor(private readonly socket: Socket) {
    // Nobody reads the responses any more, so what has not begun never begins.
    socket.once('close', () => (this.waiting.length = 0));
  }

  enter(begin: () => void): void {
    this.waiting.push(begin);
    this.beginNext();
  }

  readonly leave = (): void => {
    this.running -= 1;
    this.beginNext();
  };

  private beginNext(): void {
    while (this.running < MAX_RUNNING_REQUESTS && this.waiting.length > 0) {
      this.running += 1;
      this.waiting.shift()?.();
    }
    this.readOrPause();
  }

  /**
   * Reads no further requests while some wait, so that their memory is bounded. The bodies of the waiting requests have
   * been read, except for the last one's, which is read once that request runs.
   */
  private readOrPause(): void {
    if (this.waiting.length > 0) this.socket.pause();
    else if (this.socket.isPaused()) this.socket.resume();
  }
}

/** Makes all but a few requests of a connection wait, so that one connection cannot hold up the others. */
export function takeTurns(server: FastifyInstance): void {
  const connections = new WeakMap<Socket, Connection>();
  server.addHook('onRequest', ({ raw: { socket } }, reply, done) => {
    let connection = connections.get(socket);
    if (!connection) connections.set(socket, (connection = new Connection(socket)));
    reply.raw.once('close', connection.leave);
    connection.enter(done);
  });
}
