import { createServer } from 'node:net';
import { Random } from './random.js';

const random = Random.of(process.pid, Date.now());
const given = new Set<number>();

/**
 * Returns a port that is not in use. It is below the range that the system gives to connections and to servers that
 * listen on any port, so it stays free until the caller uses it, and also while a server restarts.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = random.between(20_000, 32_000);
    if (given.has(port) || !(await isFree(port))) continue;
    given.add(port);
    return port;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer().once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}

/** A Notify URL where nobody listens, so that every connection is refused. */
export const refusingUrl = async (): Promise<string> => `http://127.0.0.1:${await freePort()}/notify`;
