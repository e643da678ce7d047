import { createServer, type IncomingMessage, type ServerResponse, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  diagnose,
  type Diagnosis,
  type Notification,
  receivedSteps,
  type ReceivedSteps,
  verifyNotification,
} from '#receiver';
import { StartUpError } from '../values/start-up-error.js';

export interface ReceiverOptions {
  /** 0 means any free port. */
  port: number;
  secret: string;
  /** Status to answer with. Null: the status of {@link forwardTo}; without it 200, or 401 to an invalid request. */
  status: number | null;
  delayMs: number;
  /** The first attempts of each notification that are answered with 500. */
  failFirst: number;
  /** Each request is forwarded unchanged to this URL. Null: not forwarded. */
  forwardTo: URL | null;
  onReceived: (received: Received) => void;
  /** A browser came back from the authorization endpoint: this machine is also a redirect URI. */
  onRedirect?: (redirected: Redirected) => void;
}

/** The parameters that a browser brought to the redirect URI. */
export interface Redirected {
  path: string;
  parameters: Record<string, string>;
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
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(options.port, '127.0.0.1', resolve);
  }).catch((error: NodeJS.ErrnoException) => {
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
  if (isRedirect) onRedirect?.({ path: pathname, parameters: Object.fromEntries(searchParams) });
  response.writeHead(isRedirect ? 200 : 404, { 'Content-Type': 'text/plain; charset=utf-8' });
  response.end(isRedirect ? 'Done. The terminal of "usher listen" shows what arrived here.' : 'Not found.');
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
  const verification = verify(request, rawBody, options.secret);
  const forwarded = options.forwardTo && (await forward(options.forwardTo, request.headers, rawBody));
  const verdict = verification.fault ? 401 : 200;
  const answered = attempts <= options.failFirst ? 500 : (options.status ?? forwarded?.status ?? verdict);
  options.onReceived({
    webhookId,
    attempt: String(request.headers['x-webhook-attempt'] ?? attempts),
    forwarded: forwarded?.status ?? null,
    forwardedBody: forwarded?.body ?? null,
    answered,
    ...verification,
  });
  setTimeout(() => response.writeHead(answered).end(), options.delayMs);
}

function verify(
  { headers }: IncomingMessage,
  rawBody: Buffer,
  secret: string,
): Pick<Received, 'notification' | 'fault' | 'steps'> {
  const request = { rawBody, headers, secret };
  const diagnosis = diagnose(request);
  if (!diagnosis) return { fault: null, notification: verifyNotification(request), steps: receivedSteps(request) };
  const { steps, ...fault } = diagnosis;
  return { fault, notification: null, steps };
}

const FORWARD_TIMEOUT_MS = 30_000;
const BAD_GATEWAY = 502;
/** Headers that belong to one connection; fetch sets its own. */
const HOP_BY_HOP = ['host', 'connection', 'content-length', 'transfer-encoding', 'keep-alive', 'expect', 'upgrade'];

const SHOWN_BYTES = 1_024;

/** The status of a forwarded request, and the beginning of the body if the status is not 2xx. */
export interface Forwarded {
  status: number;
  body: string | null;
}

/** Forwards a request with an unchanged body; the status is 502 if there is no response. */
export async function forward(to: URL, headers: IncomingHttpHeaders, rawBody: Buffer): Promise<Forwarded> {
  const forwarded = Object.entries(headers).filter(([name]) => !HOP_BY_HOP.includes(name));
  try {
    const response = await fetch(to, {
      method: 'POST',
      headers: forwarded.map(([name, value]) => [name, String(value)] as [string, string]),
      body: rawBody,
      redirect: 'manual',
      signal: AbortSignal.timeout(FORWARD_TIMEOUT_MS),
    });
    if (!response.ok) return { status: response.status, body: await beginningOf(response) };
    await response.body?.cancel();
    return { status: response.status, body: null };
  } catch (error) {
    const { cause, message } = error as Error;
    return { status: BAD_GATEWAY, body: `no response: ${cause instanceof Error ? cause.message : message}` };
  }
}

async function beginningOf(response: Response): Promise<string> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of response.body ?? []) {
    parts.push(chunk as Uint8Array);
    length += (chunk as Uint8Array).length;
    if (length >= SHOWN_BYTES) break;
  }
  return Buffer.concat(parts).subarray(0, SHOWN_BYTES).toString();
}
