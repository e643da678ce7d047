import { LRUCache } from 'lru-cache';

/** A request older than this speaks against its host. */
const OLD_MS = 1_000;
/** So great a share of the slots, held by old requests of one host, makes it slow: nothing more goes to it. */
const SLOW_SHARE = 1 / 8;
/** No host has more requests open than this share of the slots; nor do all old requests together make more than it. */
const MOST_SHARE = 1 / 2;
const LOOK_AGAIN_MS = 250;

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

  oldAt(now: number): number {
    let count = 0;
    for (const { at } of this.open) {
      if (now - at < OLD_MS) break;
      count += 1;
    }
    return count;
  }
}

/**
 * Keeps one receiver from starving the others: decides, before a claim, whether its host may have another of this
 * worker's slots. A quick host that has its share waits here for milliseconds; a slow one is turned away.
 */
export class HostShares {
  private readonly hosts = new Map<string, Host>();
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly slots: number,
    private readonly now: () => number = () => performance.now(),
  ) {}

  /** Runs `work` in a slot of the host, or answers with null at once where the host has none to have. */
  async within<T>(name: string, work: () => Promise<T>): Promise<T | null> {
    const host = this.hosts.get(name) ?? new Host();
    this.hosts.set(name, host);
    const request = await this.admit(host);
    if (!request) return null;
    try {
      return await work();
    } finally {
      host.open.delete(request);
      this.letNextIn(name, host);
    }
  }

  private admit(host: Host): OpenRequest | null | Promise<OpenRequest | null> {
    if (this.isSlow(host)) return null;
    if (host.open.size < this.share(MOST_SHARE)) return host.begin(this.now());
    this.timer ??= setInterval(() => this.turnAwayFromSlow(), LOOK_AGAIN_MS).unref();
    return new Promise((resolve) => host.waiting.push(resolve));
  }

  private isSlow(host: Host): boolean {
    const now = this.now();
    const old = host.oldAt(now);
    return old >= this.share(SLOW_SHARE) || (old > 0 && this.allOld(now) >= this.share(MOST_SHARE));
  }

  private allOld(now: number): number {
    return [...this.hosts.values()].reduce((sum, host) => sum + host.oldAt(now), 0);
  }

  private letNextIn(name: string, host: Host): void {
    host.waiting.shift()?.(this.isSlow(host) ? null : host.begin(this.now()));
    if (host.open.size === 0 && host.waiting.length === 0) this.hosts.delete(name);
  }

  private turnAwayFromSlow(): void {
    const hosts = [...this.hosts.values()];
    for (const host of hosts.filter((host) => host.waiting.length > 0 && this.isSlow(host))) {
      for (const turnAway of host.waiting.splice(0)) turnAway(null);
    }
    if (hosts.some((host) => host.waiting.length > 0)) return;
    clearInterval(this.timer);
    this.timer = undefined;
  }

  private share(part: number): number {
    return Math.max(1, Math.floor(this.slots * part));
  }
}

/** No notification is put off for longer, in minimum intervals. */
export const MAX_DEFERRAL_INTERVALS = 8;
/** So many of one host come back in a minimum interval: each costs the queue two moves, and that is others' time. */
const PER_INTERVAL = 750;
const MOST_HOSTS = 1_000;

/** When what is turned away from a slow host comes back: one after the other, not as the herd that they are. */
export class DeferralSchedule {
  /** When the last one of a host comes back. */
  private readonly last = new LRUCache<string, number>({ max: MOST_HOSTS });

  constructor(
    private readonly minIntervalMs: number,
    private readonly now: () => number = () => performance.now(),
  ) {}

  /** In milliseconds: at least a minimum interval, at most eight. */
  next(host: string): number {
    const now = this.now();
    const longest = MAX_DEFERRAL_INTERVALS * this.minIntervalMs;
    const at = Math.max(now + this.minIntervalMs, (this.last.get(host) ?? 0) + this.minIntervalMs / PER_INTERVAL);
    if (at - now > longest) return longest * (1 - Math.random() / 2);
    this.last.set(host, at);
    return at - now;
  }
}
