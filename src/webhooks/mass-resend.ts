import { USHER_DATA_SOURCE } from '../database/data-source.js';
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
import { Problem } from '../http/problem.js';
import { liveKeyOf } from './record/webhook.recorder.js';
import { Webhook } from './webhook.entity.js';
import { WebhookService } from './webhook.service.js';

export interface MassResendOptions {
  /** Of one client alone. */
  clientId?: string | undefined;
  /** That failed at this moment, in milliseconds since 1970, or later. */
  since?: number | undefined;
  onProgress?: (done: number, total: number) => void;
}

export interface Resent {
  resent: number;
  /** Of an order with a webhook that is pending or delivered already, without its body by now, or with nowhere to go. */
  skipped: number;
}

type Failed = Pick<Webhook, 'id' | 'eventType' | 'referenceId'>;

const PAGE = 500;
const AT_ONCE = 8;

/** Sends every FAILED notification anew. Each in a transaction of its own: interrupted, it is run again. */
@Injectable()
export class MassResend {
  private readonly webhooks: Repository<Webhook>;

  constructor(
    @Inject(USHER_DATA_SOURCE) dataSource: DataSource,
    private readonly service: WebhookService,
  ) {
    this.webhooks = dataSource.getRepository(Webhook);
  }

  async run({ onProgress, ...which }: MassResendOptions = {}): Promise<Resent> {
    const where = conditions(which);
    const total = onProgress ? await this.webhooks.countBy(where) : 0;
    const done: Resent = { resent: 0, skipped: 0 };
    const tell = (): void => {
      const all = done.resent + done.skipped;
      onProgress?.(all, Math.max(all, total));
    };
    for await (const page of this.pages(where)) {
      const open = await this.withoutLive(page);
      done.skipped += page.length - open.length;
      for (let at = 0; at < open.length; at += AT_ONCE) {
        const made = await Promise.all(open.slice(at, at + AT_ONCE).map((failed) => this.resend(failed)));
        done.resent += made.filter((isMade) => isMade).length;
        done.skipped += made.filter((isMade) => !isMade).length;
        tell();
      }
      tell();
    }
    return done;
  }

  /** Newest first: what fails meanwhile lies behind, so that nobody is sent the same again and again. */
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

  /** So that the index is read in its order: Postgres wants all columns of it, MySQL none that is always null. */
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

  /** False where it may not be: somebody was faster, or there is nowhere to send it to. */
  private async resend({ id }: Failed): Promise<boolean> {
    try {
      await this.service.resend(id);
      return true;
    } catch (error) {
      if (error instanceof Problem) return false;
      throw error;
    }
  }
}

/** By the index usher_webhook_due: a FAILED one is never due. */
const conditions = ({ clientId, since }: MassResendOptions): FindOptionsWhere<Webhook> => ({
  status: 'FAILED',
  nextAttemptAt: IsNull(),
  ...(clientId !== undefined && { clientId }),
  ...(since !== undefined && { finishedAt: MoreThanOrEqual(since) }),
});
