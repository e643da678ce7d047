interface Waiting<T, R> {
  item: T;
  resolve: (result: R) => void;
  reject: (error: unknown) => void;
}

/**
 * Combines concurrent calls into one transaction. While one batch runs, the next one is collected. A batch that fails is
 * repeated item by item, so that one bad row does not fail the others.
 */
export class Batcher<T, R> {
  private waiting: Waiting<T, R>[] = [];
  private isRunning = false;

  /** `work` returns the results in the order of its items. */
  constructor(
    private readonly work: (items: T[]) => Promise<R[]>,
    private readonly maxItems = 64,
  ) {}

  run(item: T): Promise<R> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ item, resolve, reject });
      if (!this.isRunning) void this.drain();
    });
  }

  private async drain(): Promise<void> {
    this.isRunning = true;
    // Waits for the other calls of this turn of the event loop.
    await new Promise((resolve) => setImmediate(resolve));
    while (this.waiting.length > 0) await this.runBatch(this.waiting.splice(0, this.maxItems));
    this.isRunning = false;
  }

  private async runBatch(batch: Waiting<T, R>[]): Promise<void> {
    try {
      const results = await this.work(batch.map(({ item }) => item));
      batch.forEach(({ resolve }, index) => resolve(results[index] as R));
    } catch (error) {
      if (batch.length === 1) batch[0]?.reject(error);
      else for (const single of batch) await this.runBatch([single]);
    }
  }
}
