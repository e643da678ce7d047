import { Inject, Injectable, Logger } from '@nestjs/common';
import { type DataSource, In, IsNull, LessThanOrEqual, MoreThan, Not } from 'typeorm';
import { USHER_DATA_SOURCE } from '../../database/data-source.js';
import { inTransaction } from '../../database/sql.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { failExhausted } from '../deliver/claim.store.js';
import { DeliveryEvents } from '../deliver/delivery-events.js';
import { DeliveryPause, HELD_FROM, heldAt, Webhook } from '../webhook.entity.js';
import { type Deliverable, DeliveryQueue } from './delivery.queue.js';

const PAGE = 500;
/** A row is overdue when its next attempt is this late. */
const OVERDUE_MS = 10_000;

/** The distance at which webhooks of resumed pauses become due: 100 a second, so that others do not wait behind them. */
const RELEASE_GAP_MS = 10;

const SELECTED = { id: true, referenceId: true, clientId: true, notifyUrl: true, nextAttemptAt: true } as const;

type Row = Deliverable & { nextAttemptAt: number | null };

/** Finds pending webhooks without a working job and adds or restarts their jobs. */
@Injectable()
export class Sweep {
  private readonly logger = new Logger('Usher Sweep');

  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    private readonly queue: DeliveryQueue,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
    private readonly events: DeliveryEvents,
  ) {}

  /**
   * 'overdue': only rows whose attempt is late. 'all': every pending row that no pause holds; a row due later gets a delayed
   * job. `now` is a time of the database's clock.
   */
  async run(extent: 'overdue' | 'all', now: number): Promise<void> {
    await this.releaseResumed(now);
    const until = extent === 'all' ? HELD_FROM - 1 : now - OVERDUE_MS;
    let restarted = 0;
    let page: Row[] = [];
    do {
      page = await this.page(page.at(-1)?.id ?? '', until);
      restarted += await this.restart(page, now);
    } while (page.length === PAGE);
    if (restarted > 0) this.logger.warn(`retry run: ${restarted} pending webhook(s) had no job and got a new one`);
  }

  private page(after: string, until: number): Promise<Row[]> {
    return this.dataSource.manager.find(Webhook, {
      select: SELECTED,
      where: { id: MoreThan(after), status: 'PENDING', nextAttemptAt: LessThanOrEqual(until) },
      order: { id: 'ASC' },
      take: PAGE,
    });
  }

  /** Makes the webhooks of resumed pauses due, as many as fit until the next run. */
  private async releaseResumed(now: number): Promise<void> {
    const { manager } = this.dataSource;
    const resumed = await manager.findBy(DeliveryPause, { resumedAt: Not(IsNull()) });
    if (resumed.length === 0) return;
    const held = await manager.find(Webhook, {
      select: SELECTED,
      where: { status: 'PENDING', nextAttemptAt: In(resumed.map(heldAt)) },
      take: Math.ceil(this.options.retry.retryEveryMs / RELEASE_GAP_MS),
    });
    for (let delayMs = 0; held.length > 0;) {
      const page = await this.makeDue(held.splice(0, PAGE), now + delayMs);
      const ids = page.map(({ id }) => id);
      // The job that found its webhook held has ended, and the queue may still have it.
      await this.queue.remove(ids);
      await this.queue.add(page.map((webhook) => ({ webhook, delayMs: (delayMs += RELEASE_GAP_MS) })));
    }
  }

  /** Returns those of the rows that are still held. A locked row is left for the next run. */
  private makeDue(rows: Row[], nextAttemptAt: number): Promise<Row[]> {
    return inTransaction(this.dataSource, async (manager) => {
      const held = await manager.find(Webhook, {
        select: SELECTED,
        where: { id: In(rows.map(({ id }) => id)), nextAttemptAt: MoreThan(HELD_FROM) },
        order: { id: 'ASC' },
        lock: { mode: 'pessimistic_write', onLocked: 'skip_locked' },
      });
      await manager.update(Webhook, { id: In(held.map(({ id }) => id)) }, { nextAttemptAt });
      return held;
    });
  }

  /** Returns how many got a job. A job that waits, is delayed or runs is left alone. */
  private async restart(rows: Row[], now: number): Promise<number> {
    if (rows.length === 0) return 0;
    const ids = rows.map(({ id }) => id);
    const failed = await inTransaction(this.dataSource, (manager) =>
      failExhausted(manager, ids, this.options.retry.maxAttempts, now),
    );
    if (failed.length > 0) this.events.lastAttemptsCutOff(failed);
    const states = await this.queue.restart(ids);
    const missing = rows.filter((_, index) => states[index] === 'missing');
    await this.queue.add(missing.map((row) => ({ webhook: row, delayMs: (row.nextAttemptAt ?? now) - now })));
    return missing.length + states.filter((state) => state === 'restarted').length;
  }
}
