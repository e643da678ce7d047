import { createServer, type IncomingMessage, type ServerResponse, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { diagnose, type Diagnosis, type Notification, verifyNotification } from '../receiver/index.js';
import { StartUpError } from '../values/start-up-error.js';

export interface ReceiverOptions {
  /** 0: any free one. */
  port: number;
  secret: string;
  /** What to answer; null: what {@link forwardTo} answers, or else 200. */
  status: number | null;
  delayMs: number;
  /** So many attempts of each notification are answered with 500 first. */
  failFirst: number;
  /** Where each request goes on to, as it came; null: nowhere. */
  forwardTo: URL | null;
  onReceived: (received: Received) => void;
}

/** One request that came in, and what was made of it. */
export interface Received {
  webhookId: string;
  attempt: string;
  /** What the address that it was forwarded to answered, 502 where it did not; null: it was not forwarded. */
  forwarded: number | null;
  answered: number;
  notification: Notification | null;
  /** Why the signature does not hold; null where it does. */
  fault: Diagnosis | null;
}

export interface LocalReceiver {
  url: string;
  close(): void;
}

/** A receiver on this machine that verifies what it gets. */
export async function startLocalReceiver(options: ReceiverOptions): Promise<LocalReceiver> {
  const seen = new Map<string, number>();
  const server = createServer((request, response) => {
    receive(request, response, options, seen).catch(() => response.destroy());
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(options.port, '127.0.0.1', resolve);
  }).catch((error: NodeJS.ErrnoException) => {
    const why = { EADDRINUSE: 'is taken', EACCES: 'is not open to this user' }[error.code ?? ''];
    throw why === undefined ? error : new StartUpError(`port ${options.port} ${why}; choose another with --port`);
  });
  const { port } = server.address() as AddressInfo;
  const close = (): void => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${port}`, close };
}

async function receive(
  request: IncomingMessage,
  response: ServerResponse,
  options: ReceiverOptions,
  seen: Map<string, number>,
) {
  const rawBody = Buffer.concat(await request.toArray());
  const webhookId = String(request.headers['x-webhook-id'] ?? '');
  const attempts = (seen.get(webhookId) ?? 0) + 1;
  seen.set(webhookId, attempts);
  const verdict = judge(request, rawBody, options.secret);
  const forwarded = options.forwardTo && (await forward(options.forwardTo, request.headers, rawBody));
  const answered = attempts <= options.failFirst ? 500 : (options.status ?? forwarded ?? 200);
  options.onReceived({
    webhookId,
    attempt: String(request.headers['x-webhook-attempt'] ?? attempts),
    forwarded,
    answered,
    ...verdict,
  });
  setTimeout(() => response.writeHead(answered).end(), options.delayMs);
}

function judge(
  { headers }: IncomingMessage,
  rawBody: Buffer,
  secret: string,
): Pick<Received, 'notification' | 'fault'> {
  const fault = diagnose({ rawBody, headers, secret });
  return { fault, notification: fault ? null : verifyNotification({ rawBody, headers, secret }) };
}

const PATIENCE_MS = 30_000;
const BAD_GATEWAY = 502;
/** Of one connection, not of the message; fetch makes its own. */
const HOP_BY_HOP = ['host', 'connection', 'content-length', 'transfer-encoding', 'keep-alive', 'expect', 'upgrade'];

/** Hands a request on as it came, byte for byte, and answers with the status; 502 where nobody answers. */
export async function forward(to: URL, headers: IncomingHttpHeaders, rawBody: Buffer): Promise<number> {
  const kept = Object.entries(headers).filter(([name]) => !HOP_BY_HOP.includes(name));
  try {
    const response = await fetch(to, {
      method: 'POST',
      headers: kept.map(([name, value]) => [name, String(value)] as [string, string]),
      body: rawBody,
      redirect: 'manual',
      signal: AbortSignal.timeout(PATIENCE_MS),
    });
    await response.body?.cancel();
    return response.status;
  } catch {
    return BAD_GATEWAY;
  }
}
