import { LRUCache } from 'lru-cache';

/** A request open for longer than this counts as slow. */
const SLOW_REQUEST_MS = 1_000;
/** A host is slow when its slow requests hold this share of the worker slots. It then gets no further requests. */
const SLOW_SHARE = 1 / 8;
/** The largest share of the worker slots that one host may use, and that all slow requests together may use. */
const MAX_SHARE = 1 / 2;
const RECHECK_MS = 250;

interface OpenRequest {
  at: number;
}
type Waiter = (admitted: OpenRequest | null) => void;

class Host {
  /** Oldest first. */
  readonly open = new Set<OpenRequest>();
  readonly waiting: Waiter[] = [];

  begin(at: number): OpenRequest {
    const request = { at };
    this.open.add(request);
    return request;
  }

  slowRequestsAt(now: number): number {
    let count = 0;
    for (const { at } of this.open) {
      if (now - at < SLOW_REQUEST_MS) break;
      count += 1;
    }
    return count;
  }
}

/**
 * Prevents one slow receiver from blocking the others: decides, before the claim, whether its host may use another slot of
 * this worker. A fast host at its limit waits here for milliseconds; a slow host is rejected.
 */
export class HostShares {
  private readonly hosts = new Map<string, Host>();
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly slots: number,
    private readonly now: () => number = () => performance.now(),
  ) {}

  /** Runs `work` in a slot of the host. Returns null if the host is slow and may not use another slot. */
  async within<T>(name: string, work: () => Promise<T>): Promise<T | null> {
    const host = this.hosts.get(name) ?? new Host();
    this.hosts.set(name, host);
    const request = await this.admit(host);
    if (!request) return null;
    try {
      return await work();
    } finally {
      host.open.delete(request);
      this.admitNext(name, host);
    }
  }

  private admit(host: Host): OpenRequest | null | Promise<OpenRequest | null> {
    if (this.isSlow(host)) return null;
    if (host.open.size < this.share(MAX_SHARE)) return host.begin(this.now());
    this.timer ??= setInterval(() => this.rejectWaitingForSlow(), RECHECK_MS).unref();
    return new Promise((resolve) => host.waiting.push(resolve));
  }

  private isSlow(host: Host): boolean {
    const now = this.now();
    const slow = host.slowRequestsAt(now);
    return slow >= this.share(SLOW_SHARE) || (slow > 0 && this.allSlowRequests(now) >= this.share(MAX_SHARE));
  }

  private allSlowRequests(now: number): number {
    return [...this.hosts.values()].reduce((sum, host) => sum + host.slowRequestsAt(now), 0);
  }

  private admitNext(name: string, host: Host): void {
    host.waiting.shift()?.(this.isSlow(host) ? null : host.begin(this.now()));
    if (host.open.size === 0 && host.waiting.length === 0) this.hosts.delete(name);
  }

  private rejectWaitingForSlow(): void {
    const hosts = [...this.hosts.values()];
    for (const host of hosts.filter((host) => host.waiting.length > 0 && this.isSlow(host))) {
      for (const reject of host.waiting.splice(0)) reject(null);
    }
    if (hosts.some((host) => host.waiting.length > 0)) return;
    clearInterval(this.timer);
    this.timer = undefined;
  }

  private share(part: number): number {
    return Math.max(1, Math.floor(this.slots * part));
  }
}

/** The longest time that a notification is deferred, in minimum intervals. */
export const MAX_DEFERRAL_INTERVALS = 8;
/** How many jobs of one host return in one minimum interval. Each costs two queue operations, so the number is limited. */
const RETURNS_PER_INTERVAL = 750;
const MAX_HOSTS = 1_000;

/** Decides when the deferred jobs of a slow host return. Spreads them out so that they do not all return at once. */
export class DeferralSchedule {
  /** By host: when its last deferred job returns. */
  private readonly last = new LRUCache<string, number>({ max: MAX_HOSTS });

  constructor(
    private readonly minIntervalMs: number,
    private readonly now: () => number = () => performance.now(),
  ) {}

  /** The delay in milliseconds: from one to eight minimum intervals. */
  next(host: string): number {
    const now = this.now();
    const longest = MAX_DEFERRAL_INTERVALS * this.minIntervalMs;
    const at = Math.max(
      now + this.minIntervalMs,
      (this.last.get(host) ?? 0) + this.minIntervalMs / RETURNS_PER_INTERVAL,
    );
    if (at - now > longest) return longest * (1 - Math.random() / 2);
    this.last.set(host, at);
    return at - now;
  }
}
