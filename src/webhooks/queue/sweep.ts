import { Inject, Injectable, Logger } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { LessThanOrEqual, MoreThan, Repository } from 'typeorm';
import { databaseNow } from '../../database/sql.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { failExhausted } from '../deliver/claim.store.js';
import { DeliveryEvents } from '../deliver/delivery-events.js';
import { Webhook } from '../webhook.entity.js';
import { type Deliverable, DeliveryQueue, type RestartResult } from './delivery.queue.js';

const PAGE = 500;
/** So many jobs are asked for at once, and their answers come between this process's deliveries. */
const AT_ONCE = 10;
/** A row this late should have had its job run. */
const OVERDUE_MS = 10_000;

type Row = Deliverable & { nextAttemptAt: number | null };

/** Finds pending webhooks that the queue forgot and gives them a job again. */
@Injectable()
export class Sweep {
  private readonly logger = new Logger(Sweep.name);

  constructor(
    @InjectRepository(Webhook) private readonly webhooks: Repository<Webhook>,
    private readonly queue: DeliveryQueue,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
    private readonly events: DeliveryEvents,
  ) {}

  /** 'overdue': rows that should have run by now. 'all': every pending row, those of the future with their delay. */
  async run(extent: 'overdue' | 'all'): Promise<void> {
    const now = await databaseNow(this.webhooks.manager);
    const until = extent === 'all' ? Number.MAX_SAFE_INTEGER : now - OVERDUE_MS;
    let revived = 0;
    for (let after = ''; ;) {
      const page = await this.page(after, until);
      revived += await this.revive(page, now);
      const last = page.at(-1);
      if (!last || page.length < PAGE) break;
      after = last.id;
    }
    if (revived > 0) this.logger.warn(`retry run: ${revived} pending webhook(s) had no living job and got one`);
  }

  private page(after: string, until: number): Promise<Row[]> {
    return this.webhooks.find({
      select: { id: true, referenceId: true, clientId: true, notifyUrl: true, nextAttemptAt: true },
      where: { id: MoreThan(after), status: 'PENDING', nextAttemptAt: LessThanOrEqual(until) },
      order: { id: 'ASC' },
      take: PAGE,
    });
  }

  /** How many got a job. A job that waits, is delayed or is being worked on is left alone. */
  private async revive(rows: Row[], now: number): Promise<number> {
    if (rows.length === 0) return 0;
    const failed = await failExhausted(
      this.webhooks.manager,
      rows.map(({ id }) => id),
      this.options.retry.maxAttempts,
      now,
    );
    this.events.lastAttemptsCutOff(failed);
    const states = await this.restartJobs(rows);
    const missing = rows.filter((_, index) => states[index] === 'missing');
    await this.queue.add(missing.map((row) => ({ webhook: row, delayMs: (row.nextAttemptAt ?? now) - now })));
    return missing.length + states.filter((state) => state === 'restarted').length;
  }

  private async restartJobs(rows: Row[]): Promise<RestartResult[]> {
    const states: RestartResult[] = [];
    for (let from = 0; from < rows.length; from += AT_ONCE) {
      const some = rows.slice(from, from + AT_ONCE);
      states.push(...(await Promise.all(some.map(({ id }) => this.queue.revive(id)))));
    }
    return states;
  }
}
