import { Inject, Injectable, Logger } from '@nestjs/common';
import {
  And,
  type DataSource,
  type EntityManager,
  type FindOptionsWhere,
  In,
  IsNull,
  LessThan,
  MoreThanOrEqual,
} from 'typeorm';
import { AuditLog } from '../../audit/audit.module.js';
import { USHER_DATA_SOURCE } from '../../database/data-source.js';
import { databaseNow, inTransaction } from '../../database/sql.js';
import { insertRows } from '../../database/statements/statement.js';
import { nullForProblem } from '../../http/problem.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import type { Actor } from '../../values/actor.js';
import { firstIdAt } from '../../values/identifier.js';
import { type Recorded, WebhookRecorder } from '../record/webhook.recorder.js';
import { fittingIds } from '../search/webhook-search.js';
import { liveKeyOf, Webhook } from '../webhook.entity.js';
import { countPending, webhooksOf } from '../webhook-queries.js';
import { webhookView } from '../webhook-view.js';
import { webhookIds } from './webhook-ids.js';
import { ResentWebhook, WebhookResend } from './webhook-resend.entity.js';
import { LogLine } from '../../values/log-line.js';

/** Webhooks that one transaction resends. Few, because other transactions on their references wait for it. */
const BATCH = 50;
const EXAMINED = 500;

/** `waiting`: the client has too many pending webhooks, so a later retry run goes on. */
export type Progress = 'going-on' | 'waiting' | 'finished';

/**
 * Resends the webhooks of a request, the newest first. A batch and the progress of the request are one transaction, so what
 * a crash interrupts is neither done nor counted, and any number of workers may go on with it.
 */
@Injectable()
export class ResendWork {
  private readonly logger = new Logger('Usher webhooks');

  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    private readonly recorder: WebhookRecorder,
    private readonly audit: AuditLog,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {}

  async running(): Promise<string[]> {
    const rows = await this.dataSource.manager.find(WebhookResend, {
      select: { id: true },
      where: { finishedAt: IsNull() },
      order: { id: 'ASC' },
    });
    return rows.map(({ id }) => id);
  }

  /** Works until the request is finished or has to wait, or until it is time to stop, which is asked before each batch. */
  async run(id: string, isOver: () => boolean): Promise<Progress> {
    let progress: Progress = 'going-on';
    while (progress === 'going-on' && !isOver()) progress = await this.batch(id);
    return progress;
  }

  /** One batch. A request that was erased is finished. */
  async batch(id: string): Promise<Progress> {
    const room = await this.roomOf(await this.dataSource.manager.findOneBy(WebhookResend, { id }));
    if (room === 0) return 'waiting';
    return inTransaction(this.dataSource, async (manager) => {
      const request = await manager.findOne(WebhookResend, { where: { id }, lock: { mode: 'pessimistic_write' } });
      if (!request || request.finishedAt !== null) return 'finished';
      const most = Math.min(room, BATCH);
      const ids = await this.nextIds(manager, request, most);
      const { host, reason, isSentAgain } = request;
      // Conditions that no index supports.
      const isAny = host === null && reason === null && isSentAgain === null;
      const fitting = isAny ? ids : await fittingIds(manager, ids, { host, reason, isSentAgain, asOf: id });
      // Locked: a second request waits here, and then reads what the first one resent and how that ended.
      const failed = await manager.find(Webhook, {
        where: { ...selectedBy(request), id: In(fitting) },
        order: { id: 'DESC' },
        take: most,
        lock: { mode: 'pessimistic_write' },
      });
      const refused = await this.resendAll(manager, request, failed);
      const doneFromId = failed.length < most || ids.length <= most ? ids.at(-1) : failed.at(-1)?.id;
      const done = { resent: request.resent + failed.length - refused, refused: request.refused + refused };
      if (doneFromId === undefined) await this.finish(manager, request);
      else await manager.update(WebhookResend, { id }, { ...done, doneFromId });
      return doneFromId === undefined ? 'finished' : 'going-on';
    });
  }

  /** How many more webhooks may be pending. An operator's request is not limited, like other requests of operators. */
  private async roomOf(request: WebhookResend | null): Promise<number> {
    const { pendingWebhookLimit: limit } = this.options;
    const clientId = request?.isLimited ? request.clientId : null;
    if (clientId === null || limit === null) return BATCH;
    return Math.max(0, limit - (await countPending(this.dataSource, clientId, limit)));
  }

  /**
   * FAILED webhooks, the newest first, which may not fit the request. Reads only an index, see webhook-ids.ts. Of chosen ones at
   * most `most`, because the database may sort those of one millisecond differently.
   */
  private async nextIds(manager: EntityManager, request: WebhookResend, most: number): Promise<string[]> {
    const { clientId, referenceId, doneFromId, madeSince, madeUntil, webhookIds: chosen } = request;
    if (chosen)
      return chosen
        .filter((id) => doneFromId === null || id < doneFromId)
        .sort()
        .reverse()
        .slice(0, most);
    const { environment } = this.options;
    const before = doneFromId ?? firstIdAt(environment, madeUntil);
    const part = { before, from: firstIdAt(environment, madeSince), most: EXAMINED };
    return webhookIds(manager, [{ clientId, referenceId, status: 'FAILED' }], part);
  }

  /** Records what became of each, and returns how many were refused. */
  private async resendAll(manager: EntityManager, request: WebhookResend, failed: Webhook[]): Promise<number> {
    const done: ResentWebhook[] = [];
    const others = await webhooksOf(
      manager,
      failed.map(({ referenceId }) => referenceId),
    );
    const { id, requestId, actor: name, actorAddress: address } = request;
    const by = { requestId, actor: { name, address }, request: id };
    for (const webhook of failed) {
      // Another webhook of its order is pending or delivered, or failed later.
      const other = others.findLast(
        (other) => liveKeyOf(other) === liveKeyOf(webhook) && (other.liveKey !== null || other.id > webhook.id),
      );
      // It cannot be resent if its client has no Notify URL, or if somebody resent this one webhook just now.
      const recorded = other
        ? { webhook: other, isNew: false }
        : await resendFailed(this.recorder, this.audit, manager, webhook, by).catch(nullForProblem);
      const refusal = recorded ? webhookView(recorded.webhook).status : 'NO_URL';
      if (recorded?.isNew) done.push({ resendId: id, webhookId: recorded.webhook.id, refusal: null });
      else done.push({ resendId: id, webhookId: webhook.id, refusal });
    }
    if (done.length > 0) await insertRows(manager, ResentWebhook, done);
    return done.filter(({ refusal }) => refusal !== null).length;
  }

  private async finish(manager: EntityManager, { id, clientId, selected, resent, refused }: WebhookResend) {
    await manager.update(WebhookResend, { id }, { finishedAt: await databaseNow(manager) });
    this.logger.log(new LogLine({ event: 'resend.finished', resend: id, client: clientId, selected, resent, refused }));
  }
}

/** Records a FAILED webhook anew: to the order's own Notify URL if it had one, else to the client's present one. */
export async function resendFailed(
  recorder: WebhookRecorder,
  audit: AuditLog,
  manager: EntityManager,
  failed: Webhook,
  { actor, ...by }: { requestId: string | null; actor: Actor | undefined; request?: string },
): Promise<Recorded> {
  const { id, referenceId, eventType, clientId, ownerId, body, usesClientUrl } = failed;
  const notifyUrl = usesClientUrl ? null : failed.notifyUrl;
  const { requestId } = by;
  const copy = { referenceId, eventType, clientId, ownerId, body, notifyUrl, resendOf: id, requestId };
  const recorded = await recorder.record(manager, copy);
  if (!recorded.isNew) return recorded;
  const detail = { resentAs: recorded.webhook.id, client: clientId, ...by };
  await audit.record({ action: 'webhook.resent', subject: `webhook:${id}`, actor, detail }, manager);
  return recorded;
}

/** The FAILED webhooks that fit a request. The set does not grow: what fails after the request is not part of it. */
export function selectedBy(request: WebhookResend): FindOptionsWhere<Webhook> {
  const { clientId, ownerId, referenceId, since, until, createdAt } = request;
  const before = LessThan(Math.min(until ?? createdAt, createdAt));
  return {
    status: 'FAILED',
    purgedAt: IsNull(),
    // Always null in a FAILED webhook; without a client this lets the database use the index of due webhooks.
    ...(clientId === null ? { nextAttemptAt: IsNull() } : { clientId }),
    ...(ownerId !== null && { ownerId }),
    ...(referenceId !== null && { referenceId }),
    finishedAt: since === null ? before : And(MoreThanOrEqual(since), before),
  };
}
