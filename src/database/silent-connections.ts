import { connect, Socket } from 'node:net';
import type { RetryPolicy } from '../core/retry-schedule.js';

const LEAST_MS = 10_000;

/**
 * After how long a database that says nothing counts as gone: its host died, or a firewall forgot the connection. Without
 * a limit of ours the kernel's applies, a quarter of an hour, and a batch of claims hangs that long.
 */
export const silenceLimit = ({ timeoutMs }: RetryPolicy): number => Math.max(LEAST_MS, 2 * timeoutMs);

/** A socket factory for pg, which connects it itself. */
export const pgSocket = (limitMs: number) => (): Socket => limited(new Socket(), limitMs);

/** A socket factory for mysql2. */
export const mysqlSocket =
  (limitMs: number) =>
  ({ config }: { config: { host: string; port: number } }): Socket =>
    limited(connect(config.port, config.host).setNoDelay(true), limitMs);

function limited(socket: Socket, limitMs: number): Socket {
  const silent = (): Socket =>
    socket.destroy(Object.assign(new Error(`no answer for ${limitMs} ms`), { code: 'ETIMEDOUT' }));
  return socket.setTimeout(limitMs, silent);
}
