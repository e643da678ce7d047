import { unavailable, unprocessable } from '../../http/problem.js';
import { type Clock, MONOTONIC } from '../../limits/limiter.js';

/** In characters. A hash of longer text would only cost time. */
export const MIN_PASSWORD_LENGTH = 10;
export const MAX_PASSWORD_LENGTH = 200;

/** Argon2id with 19 MiB and two passes, as OWASP has it. */
const ARGON2ID = { algorithm: 2, memoryCost: 19_456, timeCost: 2, parallelism: 1 };
/** A hash of no password. Its check takes as long as any other. */
const DUMMY = `$argon2id$v=19$m=${ARGON2ID.memoryCost},t=${ARGON2ID.timeCost},p=1$${'A'.repeat(22)}$${'A'.repeat(43)}`;
/**
 * After a check in the turn of a network the next one waits so many times as long as it took, so guesses of names that do not
 * exist use a fifth of a processor. A busy queue checks passwords of accounts without this rest; they have limits of their own.
 */
const REST = 4;
/** Work that has waited so long in the queue is answered 503. */
export const MAX_WAIT_MS = 8_000;
/** The part of a request's time that the queue may take, so that its answer is not taken for the database's silence. */
const QUEUE_SHARE = 0.8;

/** Waiting work, by account or network. They take turns: the one that was served goes to the end. */
type Turns = Map<string, Set<() => void>>;

export interface Guesser {
  network: string;
  /** Whether the browser has signed in to the account before. */
  isKnown: boolean;
}

/** Hashes and checks passwords, one at a time, because a hash takes a processor for tens of milliseconds. */
export class Passwords {
  private isRunning = false;
  private readonly known: Turns = new Map();
  private readonly accounts: Turns = new Map();
  private readonly networks: Turns = new Map();
  /** They take turns as well, so that none of them can lock out another one. */
  private readonly queues = new Set([this.known, this.accounts, this.networks]);
  private isResting = false;

  private readonly maxWaitMs: number;

  /** `requestMs`: the time after which a request is answered 503 because the database gave no answer. */
  constructor(
    requestMs: number,
    private readonly clock: Clock = MONOTONIC,
  ) {
    this.maxWaitMs = Math.min(MAX_WAIT_MS, QUEUE_SHARE * requestMs);
  }

  /** 422 if it is too short or too long. */
  async hash(password: string): Promise<string> {
    const { length } = typeof password === 'string' ? [...password] : '';
    if (length < MIN_PASSWORD_LENGTH || length > MAX_PASSWORD_LENGTH)
      throw unprocessable(`the password must have ${MIN_PASSWORD_LENGTH} to ${MAX_PASSWORD_LENGTH} characters`);
    return this.inTurn(this.known, '', async () => (await argon2()).hash(password, ARGON2ID));
  }

  /**
   * `hash` is null if there is no account. A wrong password is answered in the turn of its network, with or without an account,
   * so that the time does not show whether there is one. A right one is answered in the turn of its account, if that comes first.
   */
  async isRight(password: string, hash: string | null, { network, isKnown }: Guesser): Promise<boolean> {
    if ([...password].length > MAX_PASSWORD_LENGTH) return false;
    const check = (compared: string) => async () => (await argon2()).verify(compared, password);
    if (hash === null) return this.inTurn(this.networks, network, check(DUMMY));
    if (isKnown) return this.inTurn(this.known, hash, check(hash));
    if (!this.isRunning && !this.isResting) return this.inTurn(this.networks, network, check(hash));
    let answer: boolean | undefined;
    const ofNetwork = this.inTurn(this.networks, network, async () => (answer = await check(hash)()));
    const ofAccount = this.inTurn(this.accounts, hash, async () => answer ?? check(hash)());
    const rightOfAccount = ofAccount.then(
      (isRight) => isRight || ofNetwork,
      () => ofNetwork,
    );
    // The turn of the network may be refused while the account has its turn.
    return Promise.race([ofNetwork.catch(() => rightOfAccount), rightOfAccount]);
  }

  private async inTurn<T>(turns: Turns, key: string, work: () => Promise<T>): Promise<T> {
    const isStranger = turns === this.networks;
    if (this.isRunning || (isStranger && this.isResting)) await this.wait(turns, key);
    this.isRunning = true;
    this.queues.delete(turns);
    this.queues.add(turns);
    const startedAt = this.clock.now();
    try {
      return await work();
    } finally {
      if (isStranger) this.rest(REST * (this.clock.now() - startedAt));
      this.goOn();
    }
  }

  private goOn(): void {
    const next = this.next();
    this.isRunning = next !== undefined;
    next?.();
  }

  private rest(ms: number): void {
    this.isResting = true;
    this.clock.after(ms, () => {
      this.isResting = false;
      if (!this.isRunning) this.goOn();
    });
  }

  private wait(turns: Turns, key: string): Promise<void> {
    return new Promise((begin, refuse) => {
      const waiting = turns.get(key) ?? new Set();
      turns.set(key, waiting.add(begin));
      this.clock.after(this.maxWaitMs, () => {
        if (waiting.delete(begin)) refuse(unavailable());
      });
    });
  }

  private next(): (() => void) | undefined {
    for (const turns of this.queues)
      for (const [key, waiting] of turns === this.networks && this.isResting ? [] : turns) {
        const [next] = waiting;
        turns.delete(key);
        if (!next) continue;
        waiting.delete(next);
        if (waiting.size > 0) turns.set(key, waiting);
        return next;
      }
    return undefined;
  }
}

/** Loaded at the first password, because it is native code. */
const argon2 = () => import('@node-rs/argon2');
