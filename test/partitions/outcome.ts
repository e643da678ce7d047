import { readFileSync } from 'node:fs';
import type { Arrival } from '../chaos/arrivals.js';
import { groupBy, sentInTime } from '../chaos/evidence.js';
import { type Traced, unknownSteps } from '../chaos/journal.js';
import { LIMITS } from '../chaos/limits.js';
import type { WebhookRow } from '../chaos/tables.js';

/** What happened to the notifications of some orders. */
export interface Outcome {
  lost: number;
  early: number;
  overFive: number;
  repeated: number;
  /** Traces with a step that the model does not know. */
  unknown: string[];
  /** From each completion to its 200, the shortest first. */
  delaysMs: number[];
}

/** `requestedAt` has the keys of the orders, of which there should be this many. `log` is that of the receiver. */
export function outcomeOf(
  webhooks: Omit<WebhookRow, 'eventType' | 'attempts'>[],
  trace: Traced[],
  log: string,
  { requestedAt, orders }: { requestedAt: Map<string, number>; orders: number },
): Outcome {
  const mine = new Map(webhooks.filter((one) => requestedAt.has(one.referenceId)).map((one) => [one.id, one]));
  const of = <T extends { webhook: string }>(list: T[]): T[] => list.filter(({ webhook }) => mine.has(webhook));
  const lines = readFileSync(log, 'utf8').split('\n').filter(Boolean);
  const arrivals = sentInTime(of(lines.map((line) => JSON.parse(line) as Arrival)), trace);
  const grouped = groupBy(arrivals, ({ webhook }) => webhook);
  const succeededAt = new Map(
    trace.filter(({ row }) => row?.after.status === 'SUCCESS').map(({ webhook, at }) => [webhook, at]),
  );
  const delaysMs: number[] = [];
  const count = { lost: orders - mine.size, early: 0, overFive: 0, repeated: 0 };
  for (const [id, { status, referenceId }] of mine) {
    const got = grouped.get(id) ?? [];
    const accepted = got.find((arrival) => arrival.status === 200);
    if (status === 'PENDING' || !accepted) count.lost += 1;
    else delaysMs.push(accepted.at - requestedAt.get(referenceId)!);
    if (got.length > LIMITS.maxAttempts) count.overFive += 1;
    if (got.some((one, index) => index > 0 && one.at - got[index - 1]!.at < LIMITS.minIntervalMs)) count.early += 1;
    if (got.some((one) => one.at > (succeededAt.get(id) ?? Infinity))) count.repeated += 1;
  }
  delaysMs.sort((left, right) => left - right);
  return { ...count, unknown: unknownSteps(of(trace), arrivals), delaysMs };
}

export const faultsIn = ({ lost, early, overFive, repeated, unknown }: Outcome): number =>
  lost + early + overFive + repeated + unknown.length;

/** The given part of the delays was not longer than this. */
export const secondsOf = ({ delaysMs }: Outcome, part: number): string =>
  ((delaysMs[Math.floor((delaysMs.length - 1) * part)] ?? 0) / 1_000).toFixed(1);
