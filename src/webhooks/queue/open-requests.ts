import { LRUCache } from 'lru-cache';

/** A request open for longer than this is old. */
const OLD_MS = 1_000;
const MAX_KNOWN_HOSTS = 10_000;

/** Whom a delivery concerns: the client that it belongs to, and the host of its Notify URL, without the port. */
export interface Destination {
  client: string;
  host: string;
}

/** How many requests a client, a host or this process has open. */
export class Counts {
  all = 0;
  old = 0;
  /** Old, or sent to a host that was not known to be quick. */
  onTrial = 0;
}

interface OpenRequest extends Destination {
  at: number;
  isOld: boolean;
  isOnTrial: boolean;
}

/**
 * The open requests of this process by client and by host, and which hosts are known to be quick: those whose latest
 * evidence is a request that ended before it was old. Only open requests and a limited number of hosts are kept.
 */
class OpenRequests {
  private readonly counts = new Map<string, Counts>();
  private readonly knownHosts = new LRUCache<string, 'quick' | 'slow'>({ max: MAX_KNOWN_HOSTS });
  /** Oldest first. */
  private readonly young = new Set<OpenRequest>();

  constructor(private readonly now: () => number) {}

  /** Those of the client, of the host and of this process. */
  around(destination: Destination): [client: Counts, host: Counts, all: Counts] {
    const [client, host, all] = groupsOf(destination);
    return [this.countsOf(client), this.countsOf(host), this.countsOf(all)];
  }

  speedOf(host: string): 'quick' | 'slow' | 'unknown' {
    return this.knownHosts.get(host) ?? 'unknown';
  }

  /** Returns the function that ends the request. `wasSent`: whether the request was sent, so that its time counts. */
  begin({ client, host }: Destination, isOnTrial: boolean): (wasSent: boolean) => void {
    const request = { client, host, at: this.now(), isOld: false, isOnTrial };
    this.young.add(request);
    this.count(request, 1);
    return (wasSent) => this.end(request, wasSent);
  }

  /** Finds the requests that have become old. Call it before reading counts. */
  update(): void {
    const oldSince = this.now() - OLD_MS;
    for (const request of this.young) {
      if (request.at > oldSince) break;
      this.becomeOld(request);
    }
  }

  private becomeOld(request: OpenRequest): void {
    this.young.delete(request);
    this.knownHosts.set(request.host, 'slow');
    this.count(request, -1);
    Object.assign(request, { isOld: true, isOnTrial: true });
    this.count(request, 1);
  }

  private end(request: OpenRequest, wasSent: boolean): void {
    this.update();
    this.young.delete(request);
    if (wasSent && !request.isOld) this.knownHosts.set(request.host, 'quick');
    this.count(request, -1);
  }

  private countsOf(group: string): Counts {
    return this.counts.get(group) ?? new Counts();
  }

  /** Adds the request to the counts of its groups, or takes it away. */
  private count(request: OpenRequest, by: 1 | -1): void {
    for (const group of groupsOf(request)) {
      const counts = this.countsOf(group);
      counts.all += by;
      counts.old += by * Number(request.isOld);
      counts.onTrial += by * Number(request.isOnTrial);
      if (counts.all > 0) this.counts.set(group, counts);
      else this.counts.delete(group);
    }
  }
}

/** The groups in which a request counts: those of its client, of its host and of this process. */
const groupsOf = ({ client, host }: Destination) => [`client ${client}`, `host ${host}`, 'all'] as const;

/**
 * The largest shares of the worker slots. `trial`: for requests on trial, those of one client and those to one host. `total`: for
 * all requests of one client, for all to one host, and for all requests on trial together.
 */
const SHARES = { trial: 1 / 8, total: 1 / 2 };
/** The same two while only one client has jobs. A quarter of the slots stays free for the next client. */
const SHARES_ALONE = { trial: 3 / 8, total: 3 / 4 };
const ALONE_AFTER_MS = 60_000;
/** The shares of the slots in which jobs may wait for the first answers of their client or host: one client's, and all. */
const WAITING_SHARE = { client: 1 / 8, all: 1 / 4 };
const RECHECK_MS = 250;

/** A slot for one request. Release it once; `wasSent` says whether the request was sent. */
export interface Slot {
  release: (wasSent: boolean) => void;
}

export interface Refusal {
  /** The client or the host whose share is used up. */
  of: string;
  /** 'soon' while the first answers are awaited, 'later' if it is slow. */
  retry: 'soon' | 'later';
}

type Decision = 'as quick' | 'on trial' | 'wait' | Refusal;

interface Waiter {
  destination: Destination;
  answer: (slot: Slot | Refusal) => void;
}

/**
 * Divides the slots of this worker between clients and hosts, before the claim, so that slow receivers of one client
 * delay no other client. A request is on trial if it is old or if its host is not known to be quick.
 */
export class SlotShares {
  private readonly requests: OpenRequests;
  private waiting: Waiter[] = [];
  private timer: NodeJS.Timeout | undefined;
  private latestClient: string | undefined;
  /** Since when only the latest client has asked for slots. */
  private aloneSince: number;

  constructor(
    private readonly slots: number,
    private readonly now: () => number = () => performance.now(),
  ) {
    this.requests = new OpenRequests(now);
    this.aloneSince = now();
  }

  /** Resolves to a slot, if necessary after a short wait, or to the reason why there is none. */
  async take(destination: Destination): Promise<Slot | Refusal> {
    const { client } = destination;
    if (client !== this.latestClient) this.aloneSince = this.now();
    this.latestClient = client;
    this.requests.update();
    const decision = this.decide(destination);
    const mayWait = decision === 'wait' || (isSoon(decision) && this.hasRoomFor(client));
    return mayWait ? this.wait(destination) : this.carryOut(destination, decision);
  }

  private wait(destination: Destination): Promise<Slot | Refusal> {
    this.timer ??= setInterval(() => this.checkWaiting(), RECHECK_MS).unref();
    return new Promise((answer) => this.waiting.push({ destination, answer }));
  }

  private decide(destination: Destination): Decision {
    const { client, host } = destination;
    const [ofClient, ofHost] = this.requests.around(destination);
    const isAlone = client === this.latestClient && this.now() - this.aloneSince >= ALONE_AFTER_MS;
    const shares = isAlone ? SHARES_ALONE : SHARES;
    const isQuick = this.requests.speedOf(host) === 'quick' && ofHost.old < this.share(SHARES.trial);
    const refusal = isQuick ? null : this.refusal(destination, this.share(shares.trial));
    if (refusal) return refusal;
    if (ofClient.all >= this.share(shares.total) || ofHost.all >= this.share(SHARES.total)) return 'wait';
    return isQuick ? 'as quick' : 'on trial';
  }

  /** For a request on trial: the refusal if its client, its host or all requests on trial have used up their share. */
  private refusal(destination: Destination, most: number): Refusal | null {
    const [client, host] = groupsOf(destination);
    const [ofClient, ofHost, total] = this.requests.around(destination);
    if (ofClient.onTrial >= most) return refusalOf(client, ofClient.old >= most / 2);
    if (ofHost.onTrial >= most) return refusalOf(host, ofHost.old >= most / 2);
    if (total.onTrial < this.share(SHARES.total)) return null;
    const isSlow = this.requests.speedOf(destination.host) === 'slow';
    // A client without a request on trial still gets one, because its host may be quick.
    return ofClient.onTrial > 0 || isSlow ? refusalOf(client, isSlow || ofClient.old > 0) : null;
  }

  private carryOut(destination: Destination, decision: Exclude<Decision, 'wait'>): Slot | Refusal {
    if (typeof decision === 'object') return decision;
    const end = this.requests.begin(destination, decision === 'on trial');
    return {
      release: (wasSent) => {
        end(wasSent);
        if (this.waiting.length > 0) this.checkWaiting();
      },
    };
  }

  /** Answers the jobs that need not wait any longer, in the order in which they came. */
  private checkWaiting(): void {
    this.requests.update();
    const full = new Set<string>();
    this.waiting = this.waiting.filter(({ destination, answer }) => {
      // Those with the same client and host get the same decision.
      const key = `${destination.client} ${destination.host}`;
      if (full.has(key)) return true;
      const decision = this.decide(destination);
      if (decision === 'wait' || isSoon(decision)) {
        full.add(key);
        return true;
      }
      answer(this.carryOut(destination, decision));
      return false;
    });
    if (this.waiting.length > 0) return;
    clearInterval(this.timer);
    this.timer = undefined;
  }

  private hasRoomFor(client: string): boolean {
    const ofClient = this.waiting.filter(({ destination }) => destination.client === client).length;
    return ofClient < this.share(WAITING_SHARE.client) && this.waiting.length < this.share(WAITING_SHARE.all);
  }

  private share(part: number): number {
    return Math.max(1, Math.floor(this.slots * part));
  }
}

const refusalOf = (of: string, isSlow: boolean): Refusal => ({ of, retry: isSlow ? 'later' : 'soon' });

const isSoon = (decision: Decision): boolean => typeof decision === 'object' && decision.retry === 'soon';
