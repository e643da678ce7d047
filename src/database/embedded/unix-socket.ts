import { once } from 'node:events';
import { connect, type Server, type Socket } from 'node:net';

export async function listen(server: Server, path: string): Promise<void> {
  server.listen(path);
  await once(server, 'listening');
}

/**
 * 'refused' is said only of a socket file that nobody listens on. Any other failure proves nothing, and is thrown.
 */
export async function connectTo(path: string): Promise<Socket | 'refused' | 'missing'> {
  const socket = connect(path);
  try {
    await once(socket, 'connect');
    return socket;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ECONNREFUSED') return 'refused';
    if (code === 'ENOENT') return 'missing';
    if (code === 'ECONNRESET') return connectTo(path); // it stopped listening before it took us in: look again
    throw error;
  }
}

export function close(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()));
}
