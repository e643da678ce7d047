import { Logger } from '@nestjs/common';
import { LRUCache } from 'lru-cache';

const INTERVAL_MS = 60_000;
const MAX_TEXTS = 100;

/** ioredis also says this if Sentinels answer but know no primary, or name one that does not answer. */
const SENTINELS = /All sentinels are unreachable.*?( Last error: .*)?$/;

/**
 * Logs a warning at once and its repetitions at most once a minute, with their number. A repetition may name another job or
 * webhook.
 */
export class RepeatedWarnings {
  private readonly logged = new LRUCache<string, { at: number; repetitions: number }>({ max: MAX_TEXTS });

  constructor(
    private readonly logger: Pick<Logger, 'warn'>,
    private readonly now: () => number = () => performance.now(),
  ) {}

  warn(given: string): void {
    const text = given.replace(SENTINELS, 'no Sentinel leads to a primary.$1');
    const key = text.replace(/\b(job|webhook) \S+/g, '$1');
    const now = this.now();
    const last = this.logged.get(key);
    if (last && now - last.at < INTERVAL_MS) {
      last.repetitions += 1;
      return;
    }
    this.logger.warn(last && last.repetitions > 0 ? `${text} (repeated ${last.repetitions} times)` : text);
    this.logged.set(key, { at: now, repetitions: 0 });
  }
}

/** For the errors of all queues and workers of this process, which report a lost connection each. */
export const queueWarnings = new RepeatedWarnings(new Logger('Usher queue'));
