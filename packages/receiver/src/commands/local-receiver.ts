import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { CommandError } from './command.js';
import { examine, type Received } from './forward.js';

export interface ReceiverOptions {
  /** 0 means any free port. */
  port: number;
  secret: string;
  /** Status to answer with. Default: the status of {@link forwardTo}; without it 200, or 401 to an invalid request. */
  status?: number | undefined;
  /** How long it waits before it answers, in milliseconds. */
  delay?: number | undefined;
  /** How many of the first attempts of each notification are answered with 500. */
  failFirst?: number | undefined;
  /** Each request is forwarded unchanged to this URL. Default: not forwarded. */
  forwardTo?: URL | undefined;
  onReceived: (received: Received) => void;
  /** A browser came back from the authorisation endpoint with these parameters: this machine is also a redirect URI. */
  onRedirect?: (path: string, parameters: Record<string, string>) => void;
}

export interface LocalReceiver {
  url: string;
  close(): void;
}

export async function startLocalReceiver(options: ReceiverOptions): Promise<LocalReceiver> {
  const seen = new Map<string, number>();
  const server = createServer((request, response) => {
    const { method, url = '/' } = request;
    // A browser that was redirected here also asks for an icon.
    if (method === 'GET' && url === '/favicon.ico') return void response.writeHead(404, TEXT).end('Not found.');
    if (method === 'GET' && /[?&](code|error)=/.test(url)) return receiveRedirect(url, response, options);
    receive(request, response, options, seen).catch(() => response.destroy());
  });
  await once(server.listen(options.port, '127.0.0.1'), 'listening').catch((error: NodeJS.ErrnoException) => {
    const reason = { EADDRINUSE: 'is in use', EACCES: 'is not allowed for this user' }[error.code ?? ''];
    throw reason === undefined ? error : new CommandError(`port ${options.port} ${reason}; choose another with --port`);
  });
  const { port } = server.address() as AddressInfo;
  const close = (): void => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${port}`, close };
}

const TEXT = { 'Content-Type': 'text/plain; charset=utf-8' };

function receiveRedirect(url: string, response: ServerResponse, { onRedirect }: ReceiverOptions): void {
  const [path = '', query] = url.split(/\?(.*)/s);
  onRedirect?.(path, Object.fromEntries(new URLSearchParams(query)));
  response.writeHead(200, TEXT).end('Done. The terminal of "listen" shows what arrived here.');
}

async function receive(
  request: IncomingMessage,
  response: ServerResponse,
  { secret, status, delay, failFirst = 0, forwardTo, onReceived }: ReceiverOptions,
  seen: Map<string, number>,
): Promise<void> {
  const { headers } = request;
  const rawBody = Buffer.concat(await request.toArray());
  const received = await examine({ rawBody, headers, secret }, forwardTo);
  const attempts = (seen.get(received.webhookId) ?? 0) + 1;
  seen.set(received.webhookId, attempts);
  const answered = attempts <= failFirst ? 500 : (status ?? received.forwarded ?? (received.fault ? 401 : 200));
  onReceived({ ...received, attempt: received.attempt || String(attempts), answered });
  setTimeout(() => response.writeHead(answered).end(), delay);
}
