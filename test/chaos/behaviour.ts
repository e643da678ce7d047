import { Random } from '../support/random.js';
import { LIMITS } from './limits.js';

/** `late` is 200 after the timeout; `endless` is 200 with a body that never ends; `busy` is 503 with Retry-After. */
export type Answer = 'ok' | 'error' | 'hang' | 'reset' | 'late' | 'endless' | 'redirect' | 'busy';

/** The first answers of each host. Each order picks one from the list of its host. */
const HOSTS: Answer[][] = [
  ['ok'],
  ['ok'],
  ['ok', 'error'],
  ['ok', 'hang'],
  ['ok', 'reset'],
  ['ok', 'late'],
  ['ok', 'endless'],
  ['error', 'redirect', 'busy'],
];
/** How many attempts of an order get that answer before it gets 200. Nine is more than the maximum of five. */
const REPEATS = [1, 1, 1, 1, 2, 2, 3, 4, 9];

export const HOST_COUNT = HOSTS.length;
/** The number of the receiver that never answers. It is at every other address of this machine: many hosts. */
export const HANGING_RECEIVER = HOST_COUNT;
/** Its orders have numbers from here on. */
export const FIRST_HANGING_ORDER = 1_000_000;

/** Each receiver has an address of its own, because other ports of one address are the same host. */
export const addressOf = (host: number): string => `127.0.0.${2 + host}`;
export const hangingAddress = (n: number): string => `127.1.${n >> 8}.${n & 255}`;

/** The answer to the nth arrival of an order, counted from 1. */
export function answerTo(seed: number, host: number, order: number, nth: number): Answer {
  if (host === HANGING_RECEIVER) return 'hang';
  const random = Random.of(seed, 'answer', order);
  const firstAnswer = random.pick(HOSTS[host] ?? ['ok' as const]);
  return nth <= random.pick(REPEATS) ? firstAnswer : 'ok';
}

/** What the Retry-After of a `busy` answer asks for: whole seconds, up to more than three retry runs. */
export const askedMs = (seed: number, order: number): number => Random.of(seed, 'asked', order).between(0, 20) * 1_000;

export function lateByMs(seed: number, order: number): number {
  return LIMITS.timeoutMs + Random.of(seed, 'late', order).between(500, 1_500);
}
