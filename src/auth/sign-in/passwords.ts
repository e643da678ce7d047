import { Injectable } from '@nestjs/common';
import { unavailable, unprocessable } from '../../http/problem.js';

/** In characters. A hash of longer text would only cost time. */
export const MIN_PASSWORD_LENGTH = 10;
export const MAX_PASSWORD_LENGTH = 200;

/** Argon2id with 19 MiB and two passes, as OWASP has it. */
const ARGON2ID = { algorithm: 2, memoryCost: 19_456, timeCost: 2, parallelism: 1 };
/** A hash takes a processor for tens of milliseconds, so more at once would hold up everything else. */
const AT_ONCE = 2;
const MAX_WAITING = 100;

/** Hashes and checks passwords, {@link AT_ONCE} at a time. */
@Injectable()
export class Passwords {
  private running = 0;
  private readonly waiting: (() => void)[] = [];
  private dummy: Promise<string> | null = null;

  /** 422 if it is too short or too long. */
  async hash(password: string): Promise<string> {
    const length = [...password].length;
    if (length < MIN_PASSWORD_LENGTH || length > MAX_PASSWORD_LENGTH)
      throw unprocessable(`the password must have ${MIN_PASSWORD_LENGTH} to ${MAX_PASSWORD_LENGTH} characters`);
    return this.inTurn(async () => (await argon2()).hash(password, ARGON2ID));
  }

  /** Without a hash it takes the same time as with one, so that the time does not show whether there is a person with the name. */
  async isRight(password: string, hash: string | null): Promise<boolean> {
    if ([...password].length > MAX_PASSWORD_LENGTH) return false;
    this.dummy ??= this.hash('nobody has this password');
    const compared = hash ?? (await this.dummy);
    const isEqual = await this.inTurn(async () => (await argon2()).verify(compared, password));
    return isEqual && hash !== null;
  }

  private async inTurn<T>(work: () => Promise<T>): Promise<T> {
    if (this.running >= AT_ONCE) {
      if (this.waiting.length >= MAX_WAITING) throw unavailable();
      await new Promise<void>((resolve) => this.waiting.push(resolve));
    } else this.running += 1;
    try {
      return await work();
    } finally {
      const next = this.waiting.shift();
      if (next) next();
      else this.running -= 1;
    }
  }
}

/** Loaded at the first password, because it is native code. */
const argon2 = () => import('@node-rs/argon2');
