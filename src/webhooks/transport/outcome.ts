/** How far an attempt came. Waiting for a free connection counts as `connect`. */
export type Phase = 'dns' | 'connect' | 'tls' | 'headers' | 'body';

export interface AttemptFacts {
  durationMs: number;
  /** The address connected to or tried last, or the one refused. */
  address: string | null;
  phase: Phase;
  /** Whether the proxy had yet to open the way to the address. */
  awaitsProxy?: boolean;
  /** The beginning of the response body as printable text, at most 1 KiB of UTF-8; '' if there is none. */
  snippet: string;
}

export type Verdict =
  | { kind: 'delivered'; status: number }
  /** Any answer but 2xx, redirects included: they are not followed. */
  | { kind: 'refused'; status: number }
  | { kind: 'timed-out' }
  /** The reason is short and meant for a person. */
  | { kind: 'unreachable'; reason: string }
  | { kind: 'blocked'; address: string };

export type Outcome = Verdict & AttemptFacts;

/** Written by the connection while an attempt uses it. */
export interface Progress {
  phase: Phase;
  address: string | null;
  awaitsProxy?: boolean;
}

/** Why an attempt failed, for a person; null where it did not. */
export function errorOf(outcome: Outcome): string | null {
  switch (outcome.kind) {
    case 'delivered':
      return null;
    case 'refused':
      return `the receiver answered ${outcome.status}`;
    case 'timed-out':
      return `no answer ${outcome.awaitsProxy ? 'of the proxy ' : ''}in time (reached: ${outcome.phase})`;
    case 'unreachable':
      return outcome.reason;
    case 'blocked':
      return `the address ${outcome.address} is not allowed`;
  }
}

/** One line for the log and the dashboard. */
export function lineOf(outcome: Outcome): string {
  const took = `${Math.round(outcome.durationMs)} ms`;
  return outcome.kind === 'delivered' ? `delivered: ${outcome.status} in ${took}` : `${errorOf(outcome)} after ${took}`;
}
