import {
  DEFAULT_TOLERANCE_SECONDS,
  header,
  InvalidNotificationError,
  type Notification,
  verifyNotification,
  type VerifyOptions,
} from './verify.js';

/** Stores the nonces that were received. With Redis: `SET usher:<nonce> 1 NX EX <seconds>`. */
export interface ReplayMemory {
  /** Returns false if the nonce is already stored. The nonce may be deleted after this many seconds. */
  remember(nonce: string, seconds: number): boolean | Promise<boolean>;
}

/**
 * Like {@link verifyNotification}, but accepts each request only once (reason `replayed`). A retry from Usher is a new
 * request with its own nonce, so still deduplicate on `data.key`.
 */
export async function verifyOnce(options: VerifyOptions & { memory: ReplayMemory }): Promise<Notification> {
  const notification = verifyNotification(options);
  const { headers, memory, toleranceSeconds = DEFAULT_TOLERANCE_SECONDS, now = Date.now() } = options;
  const validUntil = Number(header(headers, 'X-Timestamp')) + toleranceSeconds;
  const seconds = Math.max(1, Math.ceil(validUntil - now / 1_000) + 1);
  if (await memory.remember(header(headers, 'X-Nonce-Str') ?? '', seconds)) return notification;
  throw new InvalidNotificationError('replayed', 'this request was already received');
}

/** Stores nonces in the memory of this process only. */
export class NonceMemory implements ReplayMemory {
  private readonly seen = new Map<string, number>();

  /** `now` returns milliseconds since 1970; for tests. */
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
