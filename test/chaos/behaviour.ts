import { Random } from '../support/random.js';
import { LIMITS } from './limits.js';

/** late: 200 after the timeout. endless: 200 and a body without end. */
export type Answer = 'ok' | 'error' | 'hang' | 'reset' | 'late' | 'endless' | 'redirect';

/** How the hosts answer at first, one list a host: an order draws one of its host's list. */
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
/** How often an order is answered so before it is answered 200; nine times is for ever. */
const TIMES = [1, 1, 1, 1, 2, 2, 3, 4, 9];

export const HOST_COUNT = HOSTS.length;

/** What the nth arrival of an order is answered, the first being 1. */
export function answerTo(seed: number, host: number, order: number, nth: number): Answer {
  const random = Random.of(seed, 'answer', order);
  const atFirst = random.pick(HOSTS[host] ?? ['ok' as const]);
  return nth <= random.pick(TIMES) ? atFirst : 'ok';
}

export function lateByMs(seed: number, order: number): number {
  return LIMITS.timeoutMs + Random.of(seed, 'late', order).between(500, 1_500);
}
