import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  diagnose,
  type Diagnosis,
  type Notification,
  receivedSteps,
  type ReceivedSteps,
  verifyNotification,
  type VerifyOptions,
} from '../../packages/receiver/dist/index.js';
import { StartUpError } from '../values/start-up-error.js';

export interface ReceiverOptions {
  /** 0 means any free port. */
  port: number;
  secret: string;
  /** Status to answer with. Default: the status of {@link forwardTo}; without it 200, or 401 to an invalid request. */
  status?: number;
  /** How long it waits before it answers, in milliseconds. */
  delay: number;
  /** The first attempts of each notification that are answered with 500. */
  failFirst: number;
  /** Each request is forwarded unchanged to this URL. Default: not forwarded. */
  forwardTo?: URL;
  onReceived: (received: Received) => void;
  /** A browser came back from the authorization endpoint with these parameters: this machine is also a redirect URI. */
  onRedirect?: (path: string, parameters: Record<string, string>) => void;
}

/** One received request, and how it was answered. */
export interface Received {
  webhookId: string;
  attempt: string;
  /** Status of the forwarded request; 502 if there was no response. Null: it was not forwarded. */
  forwarded: number | null;
  /** What the receiver of the forwarded request said with a status other than 2xx, at most 1 KiB; else null. */
  forwardedBody: string | null;
  answered: number;
  notification: Notification | null;
  /** Why the signature is invalid; null if it is valid. */
  fault: Omit<Diagnosis, 'steps'> | null;
  /** What was computed up to the string to sign; null if a header that is needed for it is missing. */
  steps: ReceivedSteps | null;
}

export interface LocalReceiver {
  url: string;
  close(): void;
}

/** Starts a receiver on this machine that verifies the requests it gets. */
export async function startLocalReceiver(options: ReceiverOptions): Promise<LocalReceiver> {
  const seen = new Map<string, number>();
  const server = createServer((request, response) => {
    if (isFromBrowser(request)) return answerBrowser(request, response, options);
    receive(request, response, options, seen).catch(() => response.destroy());
  });
  await once(server.listen(options.port, '127.0.0.1'), 'listening').catch((error: NodeJS.ErrnoException) => {
    const reason = { EADDRINUSE: 'is in use', EACCES: 'is not allowed for this user' }[error.code ?? ''];
    throw reason === undefined ? error : new StartUpError(`port ${options.port} ${reason}; choose another with --port`);
  });
  const { port } = server.address() as AddressInfo;
  const close = (): void => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${port}`, close };
}

/** A browser that was redirected here; it also asks for an icon. */
const isFromBrowser = ({ method, url = '/' }: IncomingMessage): boolean =>
  method === 'GET' && (/[?&](code|error)=/.test(url) || url === '/favicon.ico');

function answerBrowser(
  { url = '/' }: IncomingMessage,
  response: ServerResponse,
  { onRedirect }: ReceiverOptions,
): void {
  const { pathname, searchParams } = new URL(url, 'http://127.0.0.1');
  const isRedirect = searchParams.has('code') || searchParams.has('error');
  if (isRedirect) onRedirect?.(pathname, Object.fromEntries(searchParams));
  response.writeHead(isRedirect ? 200 : 404, { 'Content-Type': 'text/plain; charset=utf-8' });
  response.end(isRedirect ? 'Done. The terminal of "usher listen" shows what arrived here.' : 'Not found.');
}

async function receive(
  request: IncomingMessage,
  response: ServerResponse,
  { secret, status, delay, failFirst, forwardTo, onReceived }: ReceiverOptions,
  seen: Map<string, number>,
): Promise<void> {
  const { headers } = request;
  const rawBody = Buffer.concat(await request.toArray());
  const webhookId = String(headers['x-webhook-id'] ?? '');
  const attempts = (seen.get(webhookId) ?? 0) + 1;
  seen.set(webhookId, attempts);
  const verification = verify({ rawBody, headers, secret });
  const { forwarded, forwardedBody } = forwardTo ? await forward(forwardTo, headers, rawBody) : NOT_FORWARDED;
  const answered = attempts <= failFirst ? 500 : (status ?? forwarded ?? (verification.fault ? 401 : 200));
  const attempt = String(headers['x-webhook-attempt'] ?? attempts);
  onReceived({ webhookId, attempt, forwarded, forwardedBody, answered, ...verification });
  setTimeout(() => response.writeHead(answered).end(), delay);
}

function verify(request: VerifyOptions): Pick<Received, 'notification' | 'fault' | 'steps'> {
  const diagnosis = diagnose(request);
  if (!diagnosis) return { fault: null, notification: verifyNotification(request), steps: receivedSteps(request) };
  const { steps, ...fault } = diagnosis;
  return { fault, notification: null, steps };
}

type Forwarded = Pick<Received, 'forwarded' | 'forwardedBody'>;

const NOT_FORWARDED: Forwarded = { forwarded: null, forwardedBody: null };
const FORWARD_TIMEOUT_MS = 30_000;
const BAD_GATEWAY = 502;
/** Headers that belong to one connection; fetch sets its own. */
const HOP_BY_HOP = ['host', 'connection', 'content-length', 'transfer-encoding', 'keep-alive', 'expect', 'upgrade'];

/** Forwards a request with an unchanged body; the status is 502 if there is no response. */
async function forward(to: URL, headers: IncomingHttpHeaders, rawBody: Buffer): Promise<Forwarded> {
  const kept = Object.entries(headers).filter(([name]) => !HOP_BY_HOP.includes(name));
  try {
    const response = await fetch(to, {
      method: 'POST',
      headers: kept.map(([name, value]): [string, string] => [name, String(value)]),
      body: rawBody,
      redirect: 'manual',
      signal: AbortSignal.timeout(FORWARD_TIMEOUT_MS),
    });
    const forwardedBody = response.ok ? null : await beginningOf(response);
    await response.body?.cancel();
    return { forwarded: response.status, forwardedBody };
  } catch (error) {
    const { cause, message } = error as Error;
    const reason = cause instanceof Error ? cause.message : message;
    return { forwarded: BAD_GATEWAY, forwardedBody: `no response: ${reason}` };
  }
}

const SHOWN_BYTES = 1_024;

async function beginningOf({ body }: Response): Promise<string> {
  let beginning = Buffer.alloc(0);
  for await (const chunk of body ?? []) {
    beginning = Buffer.concat([beginning, chunk as Uint8Array]);
    if (beginning.length >= SHOWN_BYTES) break;
  }
  return beginning.subarray(0, SHOWN_BYTES).toString();
}
