import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';
import type { RedisAccess } from './redis.js';

export type BackendKind = 'services' | 'embedded';

export interface Options {
  seed: number;
  orders: number;
  faults: number;
  workers: number;
  apis: number;
  backend: BackendKind;
  /** The hosts of a second client, which never answer. Each gets one order. */
  hangingHosts: number;
  /** How the processes find the primary of Redis. */
  redis: RedisAccess;
  /** A checkout of another version, the released version to build, or null. */
  upgradeFrom: string | null;
  /** For this many minutes: a steady load, a fault a minute, and samples of what processes hold. 0: as many as the faults need. */
  soakMinutes: number;
}

/** An error that the user can correct. It is shown in one line, without a stack. */
export class CannotRun extends Error {}

const DEFAULTS = {
  services: { orders: 5_000, faults: 50, hangingHosts: 2_000 },
  embedded: { orders: 300, faults: 16, hangingHosts: 20 },
};
const text = { type: 'string' } as const;
const KNOWN = {
  seed: text,
  orders: text,
  faults: text,
  workers: text,
  apis: text,
  backend: text,
  redis: text,
  'hanging-hosts': text,
  'upgrade-from': text,
  soak: text,
};

export function readOptions(args: string[]): Options {
  const given = parse(args);
  const backend = given.backend ?? 'services';
  if (backend !== 'services' && backend !== 'embedded')
    throw new CannotRun('--backend is invalid; use services or embedded');
  const redis = given.redis ?? 'address';
  if (redis !== 'address' && redis !== 'sentinel') throw new CannotRun('--redis is invalid; use address or sentinel');
  return {
    backend,
    redis,
    seed: number('seed', given.seed, randomInt(1_000_000), 0),
    orders: number('orders', given.orders, DEFAULTS[backend].orders),
    faults: number('faults', given.faults, DEFAULTS[backend].faults, 0),
    workers: number('workers', given.workers, 3),
    apis: number('apis', given.apis, 2),
    hangingHosts: number('hanging-hosts', given['hanging-hosts'], DEFAULTS[backend].hangingHosts, 0),
    upgradeFrom: given['upgrade-from'] ?? null,
    soakMinutes: number('soak', given.soak, 0, 0),
  };
}

function parse(args: string[]): Partial<Record<keyof typeof KNOWN, string>> {
  try {
    return parseArgs({ args, options: KNOWN, strict: true, allowPositionals: false }).values;
  } catch (error) {
    throw new CannotRun((error as Error).message.split('. ')[0]);
  }
}

function number(name: string, given: string | undefined, fallback: number, min = 1): number {
  const value = given === undefined ? fallback : Number(given);
  if (!Number.isSafeInteger(value) || value < min)
    throw new CannotRun(`--${name} is invalid; use a whole number from ${min}`);
  return value;
}
