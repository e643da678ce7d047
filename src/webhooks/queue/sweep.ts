import { Inject, Injectable, Logger } from '@nestjs/common';
import { type DataSource, IsNull, LessThanOrEqual, MoreThan, Not } from 'typeorm';
import { dialectOf, tableOf, USHER_DATA_SOURCE } from '../../database/data-source.js';
import { inTransaction } from '../../database/sql.js';
import { runStatement } from '../../database/statements/statement.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { failExhausted } from '../deliver/claim.store.js';
import { DeliveryEvents } from '../deliver/delivery-events.js';
import { DeliveryPause, HELD_FROM, heldAt, type PauseSubject, Webhook } from '../webhook.entity.js';
import { type Deliverable, DeliveryQueue, fewAtATime } from './delivery.queue.js';

const PAGE = 500;
/** A row is overdue when its next attempt is this late. */
const OVERDUE_MS = 10_000;

/** What a resumed pause holds becomes due at this distance: 100 a second, so that others do not wait behind it. */
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

  /** Of each resumed pause as much as becomes due until the next run, in short transactions. */
  private async releaseResumed(now: number): Promise<void> {
    const most = Math.ceil(this.options.retry.retryEveryMs / RELEASE_GAP_MS);
    const resumed = await this.dataSource.manager.findBy(DeliveryPause, { resumedAt: Not(IsNull()) });
    for (const { subject } of resumed) {
      let page: Row[] = [];
      for (let released = 0; released < most; released += page.length) {
        page = await this.release(subject, now + released * RELEASE_GAP_MS, Math.min(PAGE, most - released));
        if (page.length === 0) break;
        // The job that found its row held has ended.
        await this.queue.remove(page.map(({ id }) => id));
        await this.queue.add(page.map((row) => ({ webhook: row, delayMs: (row.nextAttemptAt ?? now) - now })));
      }
    }
  }

  /** Deletes the pause if it holds nothing any more. */
  private release(subject: PauseSubject, from: number, take: number): Promise<Row[]> {
    return inTransaction(this.dataSource, async (manager) => {
      const lock = { mode: 'pessimistic_write' } as const;
      const pause = await manager.findOne(DeliveryPause, { where: { subject }, lock });
      if (!pause || pause.resumedAt === null) return [];
      const where = { status: 'PENDING', nextAttemptAt: heldAt(pause) } as const;
      const held: Row[] = await manager.find(Webhook, { select: SELECTED, where, order: { id: 'ASC' }, take });
      if (held.length === 0) await manager.delete(DeliveryPause, { subject });
      if (held.length === 0) return [];
      const rows = held.map((row, index) => ({ ...row, nextAttemptAt: from + index * RELEASE_GAP_MS }));
      const { rows: rowsOf, update } = dialectOf(manager);
      const due = rows.map(({ id, nextAttemptAt }) => ({ id, due: nextAttemptAt }));
      const { sql, parameters } = rowsOf({ id: 'text', due: 'bigint' }, due);
      const text = update(tableOf(manager, Webhook), sql, { next_attempt_at: 'v.due' }, "AND t.status = 'PENDING'");
      await runStatement(manager, { text, parameters });
      return rows;
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
    const states = await fewAtATime(ids, (id) => this.queue.restart(id));
    const missing = rows.filter((_, index) => states[index] === 'missing');
    await this.queue.add(missing.map((row) => ({ webhook: row, delayMs: (row.nextAttemptAt ?? now) - now })));
    return missing.length + states.filter((state) => state === 'restarted').length;
  }
}
