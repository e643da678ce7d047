import { codeOfStatus, type DiagnosisCode } from './diagnosis.js';

/** The last phase that an attempt reached. Waiting for a free connection counts as `connect`. */
export type Phase = 'dns' | 'connect' | 'tls' | 'headers' | 'body';

export interface AttemptFacts {
  durationMs: number;
  /** The address that was connected to, tried last, or refused. */
  address: string | null;
  phase: Phase;
  /** True until the proxy has opened the tunnel to the address. */
  awaitsProxy?: boolean;
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

/** Written by the connection while an attempt uses it. */
export interface Progress {
  phase: Phase;
  address: string | null;
  awaitsProxy?: boolean;
}

/** Why an attempt failed, as a text for people; null if it was delivered. */
export function errorOf(outcome: Outcome): string | null {
  switch (outcome.kind) {
    case 'delivered':
      return null;
    case 'refused':
      return `the receiver answered ${outcome.status}${waitOf(outcome.retryAfterMs)}`;
    case 'timed-out':
      return `no answer ${outcome.awaitsProxy ? 'from the proxy ' : ''}in time (reached: ${outcome.phase})`;
    case 'unreachable':
      return outcome.reason;
    case 'blocked':
      return `the address ${outcome.address} is not allowed`;
  }
}

const CODE_OF_TIMEOUT: Readonly<Record<Phase, DiagnosisCode>> = {
  dns: 'dns-timed-out',
  connect: 'connection-timed-out',
  tls: 'tls-timed-out',
  headers: 'answer-timed-out',
  body: 'answer-timed-out',
};

/** The diagnosis of an attempt that failed; null if it was delivered. */
export function diagnosisCodeOf(outcome: Outcome): DiagnosisCode | null {
  switch (outcome.kind) {
    case 'delivered':
      return null;
    case 'refused':
      return codeOfStatus(outcome.status);
    case 'timed-out':
      return outcome.awaitsProxy ? 'proxy-timed-out' : CODE_OF_TIMEOUT[outcome.phase];
    case 'unreachable':
      return outcome.code;
    case 'blocked':
      return 'address-not-allowed';
  }
}

const waitOf = (retryAfterMs: number): string =>
  retryAfterMs === 0 ? '' : ` and asked to wait ${Math.ceil(retryAfterMs / 1_000)} s`;

/** One line for the log and the dashboard. */
export function lineOf(outcome: Outcome): string {
  const took = `${Math.round(outcome.durationMs)} ms`;
  return outcome.kind === 'delivered' ? `delivered: ${outcome.status} in ${took}` : `${errorOf(outcome)} after ${took}`;
}
