import type { Notification } from './notification.js';
import {
  DEFAULT_TOLERANCE_SECONDS,
  header,
  InvalidNotificationError,
  verifyNotification,
  type VerifyOptions,
} from './verify.js';

/** Which nonces were seen. With Redis: `SET usher:<nonce> 1 NX EX <seconds>`. */
export interface ReplayMemory {
  /** False where the nonce was remembered before; may forget it after so many seconds. */
  remember(nonce: string, seconds: number): boolean | Promise<boolean>;
}

/**
 * {@link verifyNotification}, and the same request is taken only once (reason `replayed`). A retry of Usher's is another
 * request: it has a nonce of its own, so deduplicate on `data.key` all the same.
 */
export async function verifyOnce(options: VerifyOptions & { memory: ReplayMemory }): Promise<Notification> {
  const notification = verifyNotification(options);
  const { headers, memory, toleranceSeconds = DEFAULT_TOLERANCE_SECONDS, now = Date.now() } = options;
  const goodUntil = Number(header(headers, 'X-Timestamp')) + toleranceSeconds;
  const seconds = Math.max(1, Math.ceil(goodUntil - now / 1_000) + 1);
  if (await memory.remember(header(headers, 'X-Nonce-Str') ?? '', seconds)) return notification;
  throw new InvalidNotificationError('replayed', 'this very request was received before');
}

/** Remembers in this process alone, as long as it lives. */
export class NonceMemory implements ReplayMemory {
  private readonly seen = new Map<string, number>();

  /** Milliseconds since 1970; for tests. */
  constructor(private readonly now: () => number = Date.now) {}

  remember(nonce: string, seconds: number): boolean {
    const now = this.now();
    for (const [one, until] of this.seen) {
      if (until > now) break;
      this.seen.delete(one);
    }
    if ((this.seen.get(nonce) ?? 0) > now) return false;
    this.seen.delete(nonce);
    this.seen.set(nonce, now + seconds * 1_000);
    return true;
  }
}
