import { limitKey } from '../limits/limiter.js';
import type { Limits } from '../limits/limits.module.js';
import { tooManyRequests } from './problem.js';

export interface MinuteLimit {
  /** Names its counts in the shared store. */
  name: string;
  count: number;
  /** What is counted, for the error. */
  what: string;
}

/** Throws 429 above the limit. */
export function countRequest(limits: Limits, limit: MinuteLimit, clientId: string): void {
  const wait = limits.limiter(limit.name, { count: limit.count, seconds: 60 }).count(limitKey(clientId));
  if (wait > 0) throw tooManyPerMinute(limit, wait);
}

export const tooManyPerMinute = ({ count, what }: MinuteLimit, waitSeconds = 60) =>
  tooManyRequests(`only ${count} ${what} a minute are allowed; try again later`, waitSeconds);
