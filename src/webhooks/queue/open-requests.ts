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
export class OpenRequests {
  readonly total = new Counts();
  private readonly clients = new Map<string, Counts>();
  private readonly hosts = new Map<string, Counts>();
  private readonly knownHosts = new LRUCache<string, 'quick' | 'slow'>({ max: MAX_KNOWN_HOSTS });
  /** Oldest first. */
  private readonly young = new Set<OpenRequest>();

  constructor(private readonly now: () => number) {}

  ofClient(client: string): Readonly<Counts> {
    return this.clients.get(client) ?? new Counts();
  }

  ofHost(host: string): Readonly<Counts> {
    return this.hosts.get(host) ?? new Counts();
  }

  speedOf(host: string): 'quick' | 'slow' | 'unknown' {
    return this.knownHosts.get(host) ?? 'unknown';
  }

  /** Returns the function that ends the request. `wasSent`: whether the receiver was asked, so that the time counts. */
  begin({ client, host }: Destination, isOnTrial: boolean): (wasSent: boolean) => void {
    const request = { client, host, at: this.now(), isOld: false, isOnTrial };
    this.young.add(request);
    this.change(request, (counts) => {
      counts.all += 1;
      counts.onTrial += Number(isOnTrial);
    });
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
    const added = Number(!request.isOnTrial);
    Object.assign(request, { isOld: true, isOnTrial: true });
    this.change(request, (counts) => {
      counts.old += 1;
      counts.onTrial += added;
    });
  }

  private end(request: OpenRequest, wasSent: boolean): void {
    this.update();
    const { isOld, isOnTrial, client, host } = request;
    this.young.delete(request);
    if (wasSent && !isOld) this.knownHosts.set(host, 'quick');
    this.change(request, (counts) => {
      counts.all -= 1;
      counts.old -= Number(isOld);
      counts.onTrial -= Number(isOnTrial);
    });
    if (this.clients.get(client)?.all === 0) this.clients.delete(client);
    if (this.hosts.get(host)?.all === 0) this.hosts.delete(host);
  }

  private change({ client, host }: OpenRequest, apply: (counts: Counts) => void): void {
    for (const counts of [this.total, countsIn(this.clients, client), countsIn(this.hosts, host)]) apply(counts);
  }
}

function countsIn(groups: Map<string, Counts>, name: string): Counts {
  const counts = groups.get(name) ?? new Counts();
  groups.set(name, counts);
  return counts;
}
