import type { Socket } from 'node:net';
import { Logger } from '@nestjs/common';
import type { EntitySubscriberInterface } from 'typeorm';
import { isReadOnly } from './errors.js';

/** While the server stays read-only, its connections are closed at most this often. */
const RENEW_EVERY_MS = 1_000;

/**
 * The sockets of a connection pool. When the server refuses to write, all are closed, so that the next queries connect
 * again and resolve its name anew: after a failover the open connections still lead to the old primary.
 */
export class PoolSockets implements EntitySubscriberInterface {
  private readonly logger = new Logger('Usher database');
  private readonly open = new Set<Socket>();
  private renewedAt = -Infinity;

  /** After `timeoutMs` without an answer the socket is closed; 0: never. */
  keep(socket: Socket, timeoutMs: number): Socket {
    this.open.add(socket);
    socket.once('close', () => this.open.delete(socket));
    return socket.setTimeout(timeoutMs, () => destroy(socket, `no answer for ${timeoutMs} ms`, 'ETIMEDOUT'));
  }

  /** Called by TypeORM after every query. */
  afterQuery({ success, error }: { success: boolean; error?: unknown }): void {
    if (!success) this.renewAfter(error);
  }

  /** Closes all if `error` says that the server refuses to write. */
  renewAfter(error: unknown): void {
    if (!isReadOnly(error) || performance.now() - this.renewedAt < RENEW_EVERY_MS) return;
    this.renewedAt = performance.now();
    this.logger.debug(`the database is read-only; ${this.open.size} connection(s) are opened again`);
    for (const socket of this.open) destroy(socket, 'the database is read-only', 'ECONNRESET');
  }
}

const destroy = (socket: Socket, message: string, code: string): unknown =>
  socket.destroy(Object.assign(new Error(message), { code }));
