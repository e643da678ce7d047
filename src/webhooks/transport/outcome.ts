import { codeOfStatus, type DiagnosisCode } from './diagnosis.js';

/** The last phase that an attempt reached. Waiting for a free connection counts as `connect`. */
export type Phase = 'dns' | 'connect' | 'tls' | 'headers' | 'body';

/** Written by the connection while an attempt uses it. */
export interface Progress {
  phase: Phase;
  /** The address that was connected to, tried last, or refused. */
  address: string | null;
  /** True until the proxy has opened the tunnel to the address. */
  awaitsProxy?: boolean;
}

interface AttemptFacts extends Progress {
  durationMs: number;
  /** The beginning of the response body as printable text, at most 1 KiB of UTF-8, or ''. */
  snippet: string;
}

export type Verdict =
  | { kind: 'delivered'; status: number }
  /** Any status except 2xx. Redirects are included, because they are not followed. 0: no Retry-After asks to wait. */
  | { kind: 'refused'; status: number; retryAfterMs: number }
  | { kind: 'timed-out' }
  /** The reason is a short text for people. */
  | { kind: 'unreachable'; reason: string; code: DiagnosisCode }
  | { kind: 'blocked'; address: string };

export type Outcome = Verdict & AttemptFacts;

/** Why an attempt failed: a text for people, and a code for programs. */
export interface Failure {
  error: string;
  diagnosis: DiagnosisCode;
}

const CODE_OF_TIMEOUT: Readonly<Record<Phase, DiagnosisCode>> = {
  dns: 'dns-timed-out',
  connect: 'connection-timed-out',
  tls: 'tls-timed-out',
  headers: 'answer-timed-out',
  body: 'answer-timed-out',
};

/** Null if it was delivered. */
export function failureOf(outcome: Outcome): Failure | null {
  switch (outcome.kind) {
    case 'delivered':
      return null;
    case 'refused': {
      const { status, retryAfterMs, snippet } = outcome;
      return {
        error: `the receiver answered ${status}${waitOf(retryAfterMs)}`,
        diagnosis: codeOfStatus(status, snippet),
      };
    }
    case 'timed-out': {
      const { awaitsProxy, phase } = outcome;
      const error = `no answer ${awaitsProxy ? 'from the proxy ' : ''}in time (reached: ${phase})`;
      return { error, diagnosis: awaitsProxy ? 'proxy-timed-out' : CODE_OF_TIMEOUT[phase] };
    }
    case 'unreachable':
      return { error: outcome.reason, diagnosis: outcome.code };
    case 'blocked':
      return { error: `the address ${outcome.address} is not allowed`, diagnosis: 'address-not-allowed' };
  }
}

const waitOf = (retryAfterMs: number): string =>
  retryAfterMs === 0 ? '' : ` and asked to wait ${Math.ceil(retryAfterMs / 1_000)} s`;

export function lineOf(outcome: Outcome): string {
  const result =
    outcome.kind === 'delivered' ? `delivered: ${outcome.status} in` : `${failureOf(outcome)?.error} after`;
  return `${result} ${Math.round(outcome.durationMs)} ms`;
}

export type Headers = NodeJS.Dict<string | string[]>;

const MAX_SNIPPET_BYTES = 1024;
export const BODY_MAX_BYTES = 64 * 1024;

// Control, format (including bidirectional overrides), private-use and lone surrogate characters.
const UNPRINTABLE = /[^\P{C}\n\t]/gu;

/** Turns the beginning of an untrusted response body into a short printable text. */
export class ResponseSnippet {
  private head = Buffer.alloc(0);
  private bytes = 0;
  private readonly encoding: string;

  constructor(contentEncoding: Headers[string]) {
    this.encoding = encodingOf(contentEncoding);
  }

  /** Returns true when enough of the body has been read. */
  add(chunk: Buffer): boolean {
    this.bytes += chunk.length;
    const missing = MAX_SNIPPET_BYTES - this.head.length;
    if (missing > 0) this.head = Buffer.concat([this.head, chunk.subarray(0, missing)]);
    return this.bytes >= BODY_MAX_BYTES;
  }

  text(): string {
    if (this.bytes === 0) return '';
    if (this.encoding === '') return printable(this.head);
    // Only the size of a compressed body is shown; it is never decompressed.
    const size = this.bytes >= BODY_MAX_BYTES ? `${BODY_MAX_BYTES} bytes or more` : `${this.bytes} bytes`;
    return `(${this.encoding}, ${size})`;
  }
}

/** The Content-Encoding as a printable word, or '' if the body is not encoded. */
function encodingOf(header: Headers[string]): string {
  const name = String(header ?? '')
    .toLowerCase()
    .trim();
  if (name === '' || name === 'identity') return '';
  return /^[a-z][a-z0-9, -]{0,30}$/.test(name) ? name : 'encoded';
}

function printable(bytes: Buffer): string {
  // With `stream`, an incomplete last character is left out.
  const text = new TextDecoder().decode(bytes, { stream: true });
  const cleaned = text.replaceAll('\r\n', '\n').replace(UNPRINTABLE, '\uFFFD');
  const { read } = new TextEncoder().encodeInto(cleaned, new Uint8Array(MAX_SNIPPET_BYTES));
  return cleaned.slice(0, read);
}

/** The statuses with which a receiver may ask for time: RFC 6585 §4 and RFC 9110 §15.6.4. */
const ASKING_STATUSES = new Set([429, 503]);
const SECONDS = /^\d+$/;
/** More than this is never waited for. */
const MAX_RETRY_AFTER_MS = 86_400_000;
/** The form that RFC 9110 §5.6.7 requires of senders, and the one of RFC 850. Both name the time zone. */
const HTTP_DATE = /^[A-Z][a-z]{2,8}, \d\d[ -][A-Z][a-z]{2}[ -](?:\d\d){1,2} \d\d:\d\d:\d\d GMT$/;

/**
 * How long the Retry-After header of a response asks to wait, in milliseconds: seconds or an HTTP date (RFC 9110 §10.2.3).
 * 0 where the response does not ask, asks twice, or cannot be understood; at most a day. A date counts from the response's own Date
 * header where it has one, so that a wrong clock on either side changes nothing.
 */
export function retryAfterMs(status: number, headers: Headers, now = Date.now()): number {
  const asked = headers['retry-after'];
  if (!ASKING_STATUSES.has(status) || typeof asked !== 'string') return 0;
  const asksMs = SECONDS.test(asked) ? Number(asked) * 1_000 : (timeOf(asked) ?? 0) - (timeOf(headers.date) ?? now);
  return Math.min(Math.max(0, asksMs), MAX_RETRY_AFTER_MS);
}

function timeOf(date: Headers[string]): number | null {
  const time = typeof date === 'string' && HTTP_DATE.test(date) ? Date.parse(date) : NaN;
  return Number.isNaN(time) ? null : time;
}
