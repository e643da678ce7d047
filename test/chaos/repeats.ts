import type { Arrival } from './arrivals.js';
import { type Evidence, isSuccess } from './evidence.js';
import { LIMITS, SHORTEST_LEASE_MS } from './limits.js';

export const REASONS = {
  'cut-off': 'the 2xx was never recorded: a crash or an outage cut off its attempt',
  'recorded-late': 'the 2xx was recorded too late: a pause or an outage exceeded its lease',
  'answered-late': 'the 2xx came after the timeout',
} as const;
export type Reason = keyof typeof REASONS;

export interface Repeat {
  webhook: string;
  attempt: number;
  /** Why the earlier 2xx did not prevent it; null if nothing explains it. */
  reason: Reason | null;
}

/** Arrivals after the receiver had already answered an earlier one with 2xx. */
export function repeats(evidence: Evidence): Repeat[] {
  return [...evidence.arrivals.values()].flatMap((arrivals) =>
    arrivals.flatMap((arrival, index) => {
      const before = arrivals.slice(0, index).filter((earlier) => succeededBefore(earlier, arrival.at));
      if (before.length === 0) return [];
      const reasons = before.map((earlier) =>
        whyIgnored(evidence, earlier, evidence.rowOf(arrival)?.startedAt ?? arrival.at),
      );
      const reason = reasons.includes(null) ? null : (reasons[0] as Reason);
      return [{ webhook: arrival.webhook, attempt: arrival.attempt, reason }];
    }),
  );
}

/** Webhooks that ended FAILED although a receiver answered 2xx. */
export function wronglyFailed(evidence: Evidence): Repeat[] {
  const failed = evidence.observed.tables.webhooks.filter(({ status }) => status === 'FAILED');
  return failed.flatMap(({ id }) => {
    const received = (evidence.arrivals.get(id) ?? []).filter(({ status }) => isSuccess(status));
    const reasons = received.map((arrival) => whyIgnored(evidence, arrival, evidence.failedAt.get(id) ?? 0));
    if (reasons.length === 0) return [];
    return [
      {
        webhook: id,
        attempt: received[0]?.attempt ?? 0,
        reason: reasons.includes(null) ? null : (reasons[0] as Reason),
      },
    ];
  });
}

const succeededBefore = ({ status, answeredAt }: Arrival, at: number): boolean =>
  isSuccess(status) && answeredAt !== null && answeredAt < at;

/** Why a 2xx did not end the webhook before `nextAt`, when its next attempt started or it became FAILED. */
function whyIgnored(evidence: Evidence, arrival: Arrival, nextAt: number): Reason | null {
  const row = evidence.rowOf(arrival);
  if (!row) return null;
  const isDisturbed = evidence.wasDisturbed(row.startedAt, nextAt) && nextAt - row.startedAt >= SHORTEST_LEASE_MS;
  if (row.durationMs === null) return isDisturbed ? 'cut-off' : null;
  const wasLate = (arrival.answeredAt ?? 0) - row.startedAt >= LIMITS.timeoutMs;
  if (!isSuccess(row.responseStatus)) return wasLate ? 'answered-late' : null;
  const recordedAt = evidence.successAt.get(arrival.webhook) ?? Infinity;
  return recordedAt > nextAt && isDisturbed ? 'recorded-late' : null;
}
