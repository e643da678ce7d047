import { BullModule, InjectQueue } from '@nestjs/bullmq';
import {
  type BeforeApplicationShutdown,
  Inject,
  Injectable,
  Logger,
  type OnApplicationBootstrap,
} from '@nestjs/common';
import type { Queue } from 'bullmq';
import type { DataSource, EntityManager } from 'typeorm';
import { dataSourceOf, dialectOf, tableOf, USHER_DATA_SOURCE } from '../database/data-source.js';
import { runSql } from '../database/statements/statement.js';
import { withoutLimit } from '../database/sessions.js';
import { databaseNow, inTransaction } from '../database/sql.js';
import { watchedQueue, PRODUCER } from '../queue/queue.module.js';
import { type RunJob, RunQueue } from '../queue/run-queue.js';
import { Workers } from '../queue/workers.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../usher.options.js';
import { LogLine } from '../values/log-line.js';
import { deleteRows, EXPIRING_ROWS, type ExpiredKey, type ExpiringRows } from './expired-rows.js';
import { UsherNamedModule } from '../telemetry/usher-named.js';

/** How many rows of each kind were deleted. */
export type Purged = Record<keyof typeof EXPIRING_ROWS, number>;

interface PurgeOptions {
  onProgress?: (done: number, total: number) => void;
  /** Stops the purge between two batches. */
  signal?: AbortSignal;
}

const KINDS = Object.entries<ExpiringRows>(EXPIRING_ROWS) as [keyof Purged, ExpiringRows][];
const BATCH = 500;

/**
 * Deletes expired rows, oldest first, in short transactions that skip locked rows, so that nothing waits for the purge.
 * Of a delivered webhook a narrow row remains.
 */
@Injectable()
export class Purge {
  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {}

  async run({ onProgress, signal }: PurgeOptions = {}): Promise<Purged> {
    const now = await databaseNow(this.dataSource.manager);
    const total = onProgress ? await this.count(now) : 0;
    const purged = Object.fromEntries(KINDS.map(([kind]) => [kind, 0])) as Purged;
    let done = 0;
    for (const [kind, rows] of KINDS) {
      for await (const count of this.batches(rows, now, signal)) {
        purged[kind] += count;
        done += count;
        onProgress?.(done, Math.max(done, total));
      }
    }
    return purged;
  }

  private async count(now: number): Promise<number> {
    const { manager } = this.dataSource;
    const counts = KINDS.map(async ([, rows]) => {
      const counted = await runSql(
        manager,
        (parameter) => `
          SELECT COUNT(*) AS count FROM ${tableOf(manager, rows.entity)}
          WHERE ${conditionOf(manager, rows)} AND ${rows.moment} <= ${parameter(this.untilOf(rows, now))}`,
      );
      return Number(counted.rows[0]?.count);
    });
    return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
  }

  /** Rows whose moment is not after this time have expired. */
  private untilOf({ keptMs }: ExpiringRows, now: number): number {
    return now - (keptMs?.(this.options) ?? 0);
  }

  private async *batches(rows: ExpiringRows, now: number, signal: AbortSignal | undefined): AsyncGenerator<number> {
    const until = this.untilOf(rows, now);
    for (let from = 0; !signal?.aborted;) {
      const { keys, last } = await inTransaction(this.dataSource, (manager) =>
        withoutLimit(manager, async () => {
          const expired = await lockBatch(manager, rows, from, until);
          if (expired.keys.length > 0)
            await (rows.erase?.(manager, expired.keys) ?? deleteRows(manager, rows.entity, expired.keys));
          return expired;
        }),
      );
      yield keys.length;
      if (keys.length < BATCH) break;
      // Earlier rows are deleted, or another purge is deleting them, so the next batch does not read the index from its start.
      from = last;
    }
  }
}

/** The keys of a batch, and the moment of its last row. */
async function lockBatch(manager: EntityManager, rows: ExpiringRows, from: number, until: number) {
  const { entity, index, moment } = rows;
  const dataSource = dataSourceOf(manager);
  const { primaryColumns } = dataSource.getMetadata(entity);
  const { rows: found } = await runSql(
    manager,
    (parameter) => `
      SELECT ${primaryColumns.map(({ databaseName }) => databaseName).join(', ')},
        ${moment} AS moment
      FROM ${tableOf(manager, entity)} ${dialectOf(manager).byIndex(index)}
      WHERE ${conditionOf(manager, rows)} AND ${moment} >= ${parameter(from)} AND ${moment} <= ${parameter(until)}
      ORDER BY ${moment} LIMIT ${BATCH} FOR UPDATE SKIP LOCKED`,
  );
  const keyOf = (row: Record<string, unknown>): ExpiredKey =>
    Object.fromEntries(
      primaryColumns.map((column) => [
        column.propertyName,
        dataSource.driver.prepareHydratedValue(row[column.databaseName], column) as string | number,
      ]),
    );
  return { keys: found.map(keyOf), last: Number(found.at(-1)?.moment) };
}

const conditionOf = (manager: EntityManager, { condition = '1 = 1' }: ExpiringRows): string =>
  typeof condition === 'string' ? condition : condition(manager);

export const PURGE_QUEUE = 'usher-purge';

const HOUR_MS = 3_600_000;

/** Runs the purge at every full hour, in one worker. */
@Injectable()
export class PurgeSchedule implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly logger = new Logger('Usher purge');
  private readonly runs: RunQueue;
  private readonly shutdown = new AbortController();

  constructor(
    @InjectQueue(PURGE_QUEUE) queue: Queue<RunJob>,
    private readonly purge: Purge,
    private readonly workers: Workers,
  ) {
    this.runs = new RunQueue(queue, HOUR_MS, 'purge');
  }

  async onApplicationBootstrap(): Promise<void> {
    if (!this.workers.areEnabled) return;
    await this.workers.start(PURGE_QUEUE, this.process.bind(this), this.logger);
    this.runs.start();
  }

  beforeApplicationShutdown(): void {
    this.runs.stop();
    this.shutdown.abort();
  }

  async process(): Promise<void> {
    const purged = await this.purge.run({ signal: this.shutdown.signal });
    this.logger.log(new LogLine({ purged: 'expired rows', ...purged }));
  }
}

@UsherNamedModule({
  imports: [BullModule.registerQueue({ name: PURGE_QUEUE, configKey: PRODUCER })],
  providers: [Purge, PurgeSchedule, watchedQueue(PURGE_QUEUE)],
  exports: [Purge, BullModule],
})
export class PurgeModule {}
