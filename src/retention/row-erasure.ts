import { Inject, Injectable, Logger } from '@nestjs/common';
import { type DataSource, In, MoreThan } from 'typeorm';
import { AccessToken, Grant } from '../auth/tokens/grant.entity.js';
import { USHER_DATA_SOURCE } from '../database/data-source.js';
import { inTransaction } from '../database/sql.js';
import { IdempotencyKey } from '../orders/idempotency-key.entity.js';
import { MovieOrder } from '../orders/movie-order.entity.js';
import { DeliveryQueue } from '../webhooks/queue/delivery.queue.js';
import { DeliveredReference, Webhook, WebhookAttempt } from '../webhooks/webhook.entity.js';

/** How many rows of each kind were deleted. */
export type Erased = Record<Rows['kind'], number>;

/** Whose rows: all of a client, or all of a resource owner at any client. */
export type RowHolder = { clientId: string } | { ownerId: string };

interface Rows {
  kind: 'webhooks' | 'references' | 'orders' | 'idempotencyKeys' | 'accessTokens' | 'grants';
  entity: new () => { clientId: string; ownerId: string | null };
  /** The property that tells the rows of one holder apart. */
  key: string;
}

/**
 * Webhooks first, so that nothing more is sent. References, tokens and grants have no index on the client, because it would
 * cost more than it saves: their tables are read through once.
 */
const ROWS: Rows[] = [
  { kind: 'webhooks', entity: Webhook, key: 'id' },
  { kind: 'orders', entity: MovieOrder, key: 'id' },
  { kind: 'references', entity: DeliveredReference, key: 'webhookId' },
  { kind: 'idempotencyKeys', entity: IdempotencyKey, key: 'key' },
  { kind: 'accessTokens', entity: AccessToken, key: 'digest' },
  { kind: 'grants', entity: Grant, key: 'id' },
];
const NOTIFICATIONS = ROWS.slice(0, 2);

const BATCH = 500;

/** Deletes everything that belongs to a client or a resource owner, in short transactions. */
@Injectable()
export class RowErasure {
  private readonly logger = new Logger('erasure');

  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    private readonly deliveries: DeliveryQueue,
  ) {}

  /** `deleteHolder` deletes the row of the client or the member itself, last. `onProgress` gets the number of rows so far. */
  async erase(
    holder: RowHolder,
    deleteHolder: () => Promise<void>,
    onProgress: (done: number) => void,
  ): Promise<Erased> {
    const erased: Erased = { webhooks: 0, references: 0, orders: 0, idempotencyKeys: 0, accessTokens: 0, grants: 0 };
    const eraseAll = async (kinds: Rows[]): Promise<void> => {
      for (const rows of kinds)
        for await (const count of this.batches(rows, holder)) {
          erased[rows.kind] += count;
          onProgress(total(erased));
        }
    };
    await eraseAll(ROWS);
    await deleteHolder();
    // A completion that had read the holder before it was deleted may have recorded a webhook since then.
    await eraseAll(NOTIFICATIONS);
    return erased;
  }

  /** The size of each batch that was deleted. */
  private async *batches({ kind, entity, key }: Rows, holder: RowHolder): AsyncGenerator<number> {
    // Orders of a client have no index by id. Those that are deleted no longer come first in the index of their list.
    const isListed = kind === 'orders' && 'clientId' in holder;
    for (let after = ''; ;) {
      const page = (await this.dataSource.manager.find(entity, {
        select: { [key]: true },
        where: isListed ? holder : { ...holder, [key]: MoreThan(after) },
        order: Object.fromEntries((isListed ? ['listPosition', 'id'] : [key]).map((column) => [column, 'ASC'])),
        take: BATCH,
      })) as unknown as Record<string, string>[];
      const keys = page.map((row) => row[key] ?? '');
      if (kind === 'webhooks') await this.removeJobs(keys);
      await inTransaction(this.dataSource, async (manager) => {
        await manager.delete(entity, { ...holder, [key]: In(keys) });
        if (kind === 'webhooks') await manager.delete(WebhookAttempt, { webhookId: In(keys) });
      });
      yield keys.length;
      if (keys.length < BATCH) return;
      after = keys.at(-1) ?? '';
    }
  }

  /** A job that is left, because it runs or because the queue does not answer, finds no row and ends. */
  private async removeJobs(webhookIds: string[]): Promise<void> {
    await this.deliveries.remove(webhookIds).catch((error: unknown) => {
      this.logger.warn(`jobs of the deleted webhooks stay in the queue (${(error as Error).message})`);
    });
  }
}

export const total = (erased: Erased): number => Object.values(erased).reduce((sum, count) => sum + count, 0);
