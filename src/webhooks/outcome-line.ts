import type { Outcome } from './outcome.js';

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
