import { isDatabaseDown, isOutOfTime } from '../errors.js';

interface Waiting<T, R> {
  item: T;
  resolve: (result: R) => void;
  reject: (error: unknown) => void;
}

/** Items of one batch, at most. */
const MAX_ITEMS = 64;
/** While a batch runs, the next one begins with so many items, or when an item has waited so long. Until then they share a batch. */
interface Overlap {
  items: number;
  afterMs: number;
}
const SOON: Overlap = { items: 16, afterMs: 20 };
/** For work that is cheapest in large batches: the next one begins only beside one that waits, such as for a lock. */
export const IF_SLOW: Overlap = { items: Infinity, afterMs: 200 };

/**
 * Combines concurrent calls into one piece of work. An idle batcher begins at the end of the event loop's turn, so a sole call
 * does not wait. A batch that fails is repeated item by item, so that one bad item does not fail the others, unless the
 * database is down.
 */
export class Batcher<T, R> {
  private waiting: Waiting<T, R>[] = [];
  private running = 0;
  private isBeginning = false;
  private slowTimer: NodeJS.Timeout | null = null;

  /**
   * `work` returns the results in the order of its items. If it fails, it must have changed nothing. At most `maxRunning`
   * batches run at the same time.
   */
  constructor(
    private readonly work: (items: T[]) => Promise<R[]>,
    private readonly maxRunning = 1,
    private readonly overlap = SOON,
  ) {}

  run(item: T): Promise<R> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ item, resolve, reject });
      this.schedule();
    });
  }

  private schedule(): void {
    if (this.isBeginning || this.waiting.length === 0 || this.running >= this.maxRunning) return;
    if (this.running === 0 || this.waiting.length >= this.overlap.items) this.beginSoon();
    else this.slowTimer ??= setTimeout(() => this.beginSoon(), this.overlap.afterMs);
  }

  /** Waits for the other calls of this turn of the event loop. */
  private beginSoon(): void {
    this.isBeginning = true;
    if (this.slowTimer) clearTimeout(this.slowTimer);
    this.slowTimer = null;
    setImmediate(() => this.begin());
  }

  private begin(): void {
    this.isBeginning = false;
    this.running += 1;
    void this.runBatch(this.waiting.splice(0, MAX_ITEMS)).then(() => {
      this.running -= 1;
      this.schedule();
    });
    this.schedule();
  }

  private async runBatch(batch: Waiting<T, R>[]): Promise<void> {
    try {
      const results = await this.work(batch.map(({ item }) => item));
      batch.forEach(({ resolve }, index) => resolve(results[index] as R));
    } catch (error) {
      await this.repeatOrReject(batch, error);
    }
  }

  private async repeatOrReject(batch: Waiting<T, R>[], error: unknown): Promise<void> {
    // What ran into its limit of time has usually waited for one locked row, so the others succeed.
    const isSplit = batch.length > 1 && (isOutOfTime(error) || !isDatabaseDown(error));
    if (!isSplit) for (const { reject } of batch) reject(error);
    else for (const single of batch) await this.runBatch([single]);
  }
}
