/** Rejects where nothing came in time; the work itself goes on. */
export async function withTimeout<T>(work: Promise<T>, patienceMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer in ${patienceMs} ms`)), patienceMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

const KEPT_MS = 5_000;
/** What took long to find out is kept so many times as long: asking takes a twentieth of a connection's time at most. */
const KEPT_TIMES = 20;
const PATIENCE_MS = 2_000;

/** What a database or a queue says, kept for some seconds: one question at a time, and nobody waits long for its answer. */
export class CachedQuery<T> {
  private asked: Promise<T> | null = null;
  private kept: { value: T; until: number } | null = null;

  constructor(private readonly ask: () => Promise<T>) {}

  /** Null: there is no answer. */
  async get(): Promise<T | null> {
    if (this.kept && performance.now() < this.kept.until) return this.kept.value;
    this.asked ??= this.renew();
    return withTimeout(this.asked, PATIENCE_MS).catch(() => null);
  }

  private async renew(): Promise<T> {
    const askedAt = performance.now();
    try {
      const value = await this.ask();
      const now = performance.now();
      this.kept = { value, until: now + Math.max(KEPT_MS, KEPT_TIMES * (now - askedAt)) };
      return value;
    } finally {
      this.asked = null;
    }
  }
}
