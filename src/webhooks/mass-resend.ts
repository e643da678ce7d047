import { Inject, Injectable } from '@nestjs/common';
import {
  type DataSource,
  type FindOptionsOrder,
  type FindOptionsWhere,
  In,
  IsNull,
  LessThan,
  MoreThanOrEqual,
  Repository,
} from 'typeorm';
import { USHER_DATA_SOURCE } from '../database/data-source.js';
import { Problem } from '../http/problem.js';
import type { Actor } from '../values/actor.js';
import { liveKeyOf } from './record/webhook.recorder.js';
import { Webhook } from './webhook.entity.js';
import { WebhookService } from './webhook.service.js';

export interface MassResendOptions {
  /** Only the webhooks of this client. */
  clientId?: string | undefined;
  /** Only webhooks that failed at this time or later, in milliseconds since 1970. */
  since?: number | undefined;
  /** Who asks for it, for the audit. Default: the application, `host`. */
  actor?: Actor | undefined;
  onProgress?: (done: number, total: number) => void;
}

export interface Resent {
  resent: number;
  /** Webhooks that cannot be resent: another one is PENDING or SUCCESS, the body was deleted, or there is no Notify URL. */
  skipped: number;
}

type Failed = Pick<Webhook, 'id' | 'eventType' | 'referenceId'>;

const PAGE = 500;
const CONCURRENCY = 8;

/** Resends every FAILED notification, each in its own transaction. After an interruption it can be run again. */
@Injectable()
export class MassResend {
  private readonly webhooks: Repository<Webhook>;

  constructor(
    @Inject(USHER_DATA_SOURCE) dataSource: DataSource,
    private readonly service: WebhookService,
  ) {
    this.webhooks = dataSource.getRepository(Webhook);
  }

  async run({ onProgress, actor, ...which }: MassResendOptions = {}): Promise<Resent> {
    const where = conditions(which);
    const total = onProgress ? await this.webhooks.countBy(where) : 0;
    const done: Resent = { resent: 0, skipped: 0 };
    const reportProgress = (): void => {
      const all = done.resent + done.skipped;
      onProgress?.(all, Math.max(all, total));
    };
    for await (const page of this.pages(where)) {
      const resendable = await this.withoutLive(page);
      done.skipped += page.length - resendable.length;
      for (let at = 0; at < resendable.length; at += CONCURRENCY) {
        const results = await Promise.all(
          resendable.slice(at, at + CONCURRENCY).map((failed) => this.resend(failed, actor)),
        );
        done.resent += results.filter((isResent) => isResent).length;
        done.skipped += results.filter((isResent) => !isResent).length;
        reportProgress();
      }
      reportProgress();
    }
    return done;
  }

  /** Newest first: a webhook that fails during this run has a newer id, so it is not resent a second time. */
  private async *pages(where: FindOptionsWhere<Webhook>): AsyncGenerator<Failed[]> {
    for (let before: string | undefined; ;) {
      const page = await this.webhooks.find({
        select: { id: true, eventType: true, referenceId: true },
        where: before === undefined ? where : { ...where, id: LessThan(before) },
        order: this.newestFirst,
        take: PAGE,
      });
      if (page.length > 0) yield page;
      if (page.length < PAGE) return;
      before = page.at(-1)?.id;
    }
  }

  /** Makes the database read the index in order: Postgres needs all its columns, MySQL only those that are not null. */
  private get newestFirst(): FindOptionsOrder<Webhook> {
    const isPostgres = this.webhooks.manager.dataSource.options.type === 'postgres';
    return isPostgres ? { nextAttemptAt: 'DESC', id: 'DESC' } : { id: 'DESC' };
  }

  private async withoutLive(page: Failed[]): Promise<Failed[]> {
    const live = await this.webhooks.find({
      select: { id: true, liveKey: true },
      where: { liveKey: In(page.map(liveKeyOf)) },
    });
    const keys = new Set(live.map(({ liveKey }) => liveKey));
    return page.filter((failed) => !keys.has(liveKeyOf(failed)));
  }

  /** False if the webhook cannot be resent, for example because it was resent meanwhile or has no Notify URL. */
  private async resend({ id }: Failed, actor: Actor | undefined): Promise<boolean> {
    try {
      await this.service.resend(id, { actor });
      return true;
    } catch (error) {
      if (error instanceof Problem) return false;
      throw error;
    }
  }
}

/** Uses the index usher_webhook_due: nextAttemptAt is always null in a FAILED webhook. */
const conditions = ({ clientId, since }: MassResendOptions): FindOptionsWhere<Webhook> => ({
  status: 'FAILED',
  nextAttemptAt: IsNull(),
  ...(clientId !== undefined && { clientId }),
  ...(since !== undefined && { finishedAt: MoreThanOrEqual(since) }),
});
