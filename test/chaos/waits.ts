import { askedMs } from './behaviour.js';
import type { Evidence } from './evidence.js';
import { LIMITS } from './limits.js';

/** A claim may be this old when its request is sent, so an attempt can end this much later than its row says. */
const STALE_CLAIM_MS = 5_000;
/** The wait of a failed attempt ends at one of this many retry runs. */
const RUNS = 3;

const runAt = (at: number): number => Math.ceil(at / LIMITS.retryEveryMs) * LIMITS.retryEveryMs;

/**
 * Attempts after an answer with Retry-After that were due sooner than it asks for, or later than three retry runs. Those
 * after a crash or an outage are left out, because the lease decided when they were due.
 */
export function wrongWaits(seed: number, evidence: Evidence): string[] {
  const claims = evidence.observed.tables.changes
    .filter(({ isClaim }) => isClaim)
    .sort((left, right) => left.at - right.at);
  return evidence.observed.arrivals.flatMap((arrival) => {
    const { webhook, attempt, order, answer, at } = arrival;
    const row = evidence.rowOf(arrival);
    const next = evidence.rowOf({ ...arrival, attempt: attempt + 1 });
    if (answer !== 'busy' || !row || row.durationMs === null || row.responseStatus === null || !next) return [];
    if (evidence.wasDisturbed(row.startedAt, next.startedAt)) return [];
    const claim = claims.find((one) => one.webhook === webhook && one.at >= next.startedAt);
    const earliest = Math.min(
      runAt(at + askedMs(seed, order)),
      runAt(at + LIMITS.minIntervalMs) + (RUNS - 1) * LIMITS.retryEveryMs,
    );
    const ended = row.startedAt + row.durationMs + STALE_CLAIM_MS;
    const latest = ended + LIMITS.minIntervalMs + RUNS * LIMITS.retryEveryMs;
    const isRight = claim !== undefined && claim.due >= earliest && claim.due <= latest;
    return isRight ? [] : [`${webhook} attempt ${attempt + 1}`];
  });
}
