import { Inject, Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import type { DataSource } from 'typeorm';
import { USHER_DATA_SOURCE } from '../database/data-source.js';
import { type Problem, tooManyRequests } from '../http/problem.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../usher.options.js';
import { countPending } from './webhook-queries.js';
import { UsherNamedModule } from '../telemetry/usher-named.js';

/** How long a process trusts a count. So a client can exceed the limit by what it creates in this time. */
const TTL_MS = 1_000;
const MAX_CLIENTS = 10_000;
/** A guess: pending notifications are delivered, or tried again, within two minutes. */
const RETRY_AFTER_SECONDS = 30;

/**
 * Refuses new work of a client while too many of its webhooks are pending. It does not refuse what leads to a promised
 * notification: completions and `WebhookService.notify()`.
 */
@Injectable()
export class PendingLimit {
  private readonly limit: number | null;
  /** By client: whether the limit is reached. Requests at the same time share one query. */
  private readonly answers = new LRUCache<string, Promise<boolean>>({ max: MAX_CLIENTS, ttl: TTL_MS });

  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    @Inject(USHER_OPTIONS) { pendingWebhookLimit }: ResolvedOptions,
  ) {
    this.limit = pendingWebhookLimit;
  }

  /** Throws 429 with Retry-After if the client has reached the limit. */
  async check(clientId: string): Promise<void> {
    if (this.limit === null || !(await this.isReached(clientId, this.limit))) return;
    throw tooManyPending(this.limit);
  }

  private isReached(clientId: string, limit: number): Promise<boolean> {
    const known = this.answers.get(clientId);
    if (known) return known;
    const asked = countPending(this.dataSource, clientId, limit).then((count) => count >= limit);
    this.answers.set(clientId, asked);
    asked.catch(() => this.answers.delete(clientId));
    return asked;
  }
}

/** Comes with UsherModule. */
@UsherNamedModule({ providers: [PendingLimit], exports: [PendingLimit] })
export class PendingLimitModule {}

export const tooManyPending = (limit: number): Problem =>
  tooManyRequests(
    `${limit} notifications of this client are pending, which is the limit; ` +
      'make sure that your receivers answer 2xx, and try again when some are delivered',
    RETRY_AFTER_SECONDS,
  );
