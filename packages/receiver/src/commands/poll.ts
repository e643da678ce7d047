import { setTimeout as sleep } from 'node:timers/promises';
import { CommandError } from './command.js';
import { exchange } from './exchange.js';
import { examine, isAccepted, type Received } from './forward.js';

export interface PollOptions {
  service: URL;
  clientId: string;
  secret: string;
  forwardTo: URL;
  onReceived: (received: Received) => void;
  /** The service cannot be asked now; it is asked again. */
  onFault: (fault: string) => void;
  signal: AbortSignal;
}

const EVERY_MS = 2_000;
const PAGE = 100;

/**
 * Forwards what the service could not deliver, until it is aborted. What is not accepted is forwarded again in each round,
 * and reported again if the answer changes.
 * @throws CommandError if the service refuses
 */
export async function poll(options: PollOptions): Promise<void> {
  const { secret, forwardTo, onReceived, onFault, signal } = options;
  const undeliveredAfter = undeliveredOf(options);
  const statuses = new Map<string, number | null>();
  /** Returns the id up to which everything is accepted. */
  const round = async (cursor: string): Promise<string> => {
    let [accepted, isGapless] = [cursor, true];
    for await (const { headers, body } of undeliveredAfter(cursor)) {
      if (signal.aborted) break;
      const id = String(headers['X-Webhook-Id']);
      const before = statuses.get(id) ?? null;
      if (!isAccepted(before)) {
        const received = await examine({ headers, rawBody: Buffer.from(body), secret }, forwardTo);
        if (received.forwarded !== before) onReceived({ ...received, answered: null });
        statuses.set(id, received.forwarded);
        isGapless &&= isAccepted(received.forwarded);
      }
      if (isGapless) accepted = id;
    }
    return accepted;
  };
  // A round begins where the second-last one ended: a slow transaction may add a notification before those already
  // read.
  let [cursor, next, lastFault] = ['', '', ''];
  while (!signal.aborted) {
    try {
      [cursor, next] = [next, await round(cursor)];
      lastFault = '';
    } catch (error) {
      if (error instanceof CommandError) throw error;
      const { message } = error as Error;
      if (message !== lastFault) onFault(message);
      lastFault = message;
    }
    await sleep(EVERY_MS, null, { signal }).catch(() => null);
  }
}

interface Undelivered {
  headers: Record<string, string>;
  body: string;
}

/** Makes a reader of what `GET /webhooks/undelivered` lists for the client. */
function undeliveredOf({ service, clientId, secret }: PollOptions) {
  const ask = async (path: string, request: Parameters<typeof exchange>[1]): Promise<string> => {
    const url = new URL(path, service.href.replace(/\/*$/, '/'));
    const { status, text } = await exchange(url, { ...request, mostBytes: Infinity });
    if (status === 200) return text;
    if (status === null || status === 429 || status >= 500)
      throw new Error(`${service.href} does not answer now: ${text}`);
    throw new CommandError(`${service.href} answers ${status}: ${text}`);
  };
  let [token, renewedAt] = ['', 0];
  const renewToken = async (): Promise<void> => {
    const answer = await ask('auth/token', {
      auth: `${clientId}:${secret}`,
      headers: { 'Content-Type': 'application/json' },
      body: '{"grant_type":"client_credentials"}',
    });
    const { access_token, expires_in } = JSON.parse(answer) as { access_token: string; expires_in: number };
    [token, renewedAt] = [access_token, Date.now() + expires_in * 500];
  };
  return async function* (cursor: string) {
    if (Date.now() >= renewedAt) await renewToken();
    const headers = { Authorization: `Bearer ${token}`, Accept: 'application/x-ndjson' };
    let page: Undelivered[];
    do {
      const path = `webhooks/undelivered?limit=${PAGE}${cursor && `&cursor=${cursor}`}`;
      const lines = (await ask(path, { method: 'GET', headers })).split('\n').filter(Boolean);
      page = lines.map((line) => JSON.parse(line) as Undelivered);
      yield* page;
      cursor = page.at(-1)?.headers['X-Webhook-Id'] ?? cursor;
    } while (page.length === PAGE);
  };
}
