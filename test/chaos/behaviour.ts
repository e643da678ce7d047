import { Random } from '../support/random.js';
import { LIMITS } from './limits.js';

/** `late` is 200 after the timeout; `endless` is 200 with a body that never ends. */
export type Answer = 'ok' | 'error' | 'hang' | 'reset' | 'late' | 'endless' | 'redirect';

/** The first answers of each host. Each order picks one from the list of its host. */
const HOSTS: Answer[][] = [
  ['ok'],
  ['ok'],
  ['ok', 'error'],
  ['ok', 'hang'],
  ['ok', 'reset'],
  ['ok', 'late'],
  ['ok', 'endless'],
  ['error', 'redirect'],
];
/** How many attempts of an order get that answer before it gets 200. Nine is more than the maximum of five. */
const REPEATS = [1, 1, 1, 1, 2, 2, 3, 4, 9];

export const HOST_COUNT = HOSTS.length;

/** The answer to the nth arrival of an order, counted from 1. */
export function answerTo(seed: number, host: number, order: number, nth: number): Answer {
  const random = Random.of(seed, 'answer', order);
  const firstAnswer = random.pick(HOSTS[host] ?? ['ok' as const]);
  return nth <= random.pick(REPEATS) ? firstAnswer : 'ok';
}

export function lateByMs(seed: number, order: number): number {
  return LIMITS.timeoutMs + Random.of(seed, 'late', order).between(500, 1_500);
}
