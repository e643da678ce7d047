import type { IncomingHttpHeaders } from 'node:http';
import { type Fault, faultOf, receivedSteps, type ReceivedSteps } from '../diagnosis.js';
import { header, type Notification, verifyNotification } from '../verify.js';
import { exchange } from './exchange.js';

/** One notification that arrived here, and how it was answered. */
export interface Received {
  webhookId: string;
  attempt: string;
  /** Status of the forwarded request; 502 if there was no response. Null: it was not forwarded. */
  forwarded: number | null;
  /** What the receiver of the forwarded request said with a status other than 2xx, at most 1 KiB; else null. */
  forwardedBody: string | null;
  /** Null if nobody waits for an answer. */
  answered: number | null;
  notification: Notification | null;
  /** Why the signature is invalid; null if it is valid. */
  fault: Fault | null;
  /** What was computed up to the string to sign; null if a header that is needed for it is missing. */
  steps: ReceivedSteps | null;
}

/** Verifies a notification, and forwards it unchanged if there is an address. */
export async function examine(arrived: Arrived, to: URL | undefined): Promise<Omit<Received, 'answered'>> {
  const { headers, rawBody } = arrived;
  const fault = faultOf(arrived);
  return {
    webhookId: header(headers, 'X-Webhook-Id') ?? '',
    attempt: header(headers, 'X-Webhook-Attempt') ?? '',
    fault,
    notification: fault ? null : verifyNotification(arrived),
    steps: receivedSteps(arrived),
    ...(to ? await forward(to, headers, rawBody) : { forwarded: null, forwardedBody: null }),
  };
}

interface Arrived {
  headers: IncomingHttpHeaders;
  rawBody: Uint8Array;
  secret: string;
}

const BAD_GATEWAY = 502;
/** Headers that belong to one connection; each request has its own. */
const HOP_BY_HOP = ['host', 'connection', 'content-length', 'transfer-encoding', 'keep-alive', 'expect', 'upgrade'];

/** Forwards a request with an unchanged body; the status is 502 if there is no response. */
async function forward(to: URL, headers: IncomingHttpHeaders, body: Uint8Array) {
  const kept = Object.entries(headers).filter(([name]) => !HOP_BY_HOP.includes(name));
  const { status, text } = await exchange(to, { headers: Object.fromEntries(kept), body });
  if (status === null) return { forwarded: BAD_GATEWAY, forwardedBody: `no response: ${text}` };
  return { forwarded: status, forwardedBody: isAccepted(status) ? null : text };
}

export const isAccepted = (status: number | null): boolean => status !== null && status >= 200 && status < 300;
