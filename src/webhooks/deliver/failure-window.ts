const SLOT_MS = 60_000;
const SLOTS = 15;
/** Clients counted in one slot. More than that would only cost memory: the metric shows few of them. */
const MAX_CLIENTS = 1_000;

interface Slot {
  number: number;
  failures: Map<string, number>;
}

/** Failed attempts of each client in the last 15 minutes, in slots of a minute. Its memory is bounded. */
export class FailureWindow {
  private slots: Slot[] = [];

  constructor(private readonly now: () => number = () => performance.now()) {}

  count(client: string): void {
    const { failures } = this.currentSlot();
    const before = failures.get(client);
    if (before !== undefined || failures.size < MAX_CLIENTS) failures.set(client, (before ?? 0) + 1);
  }

  /** The clients with the most failures, the most first. */
  top(most: number): [client: string, failures: number][] {
    this.dropOld();
    const sums = new Map<string, number>();
    for (const { failures } of this.slots)
      for (const [client, count] of failures) sums.set(client, (sums.get(client) ?? 0) + count);
    return [...sums].sort(([, left], [, right]) => right - left).slice(0, most);
  }

  private currentSlot(): Slot {
    const last = this.slots.at(-1);
    if (last?.number === this.slotNumber) return last;
    this.dropOld();
    const slot = { number: this.slotNumber, failures: new Map<string, number>() };
    this.slots.push(slot);
    return slot;
  }

  private dropOld(): void {
    this.slots = this.slots.filter(({ number }) => number > this.slotNumber - SLOTS);
  }

  private get slotNumber(): number {
    return Math.floor(this.now() / SLOT_MS);
  }
}
