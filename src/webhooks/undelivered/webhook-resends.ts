import { Inject, Injectable } from '@nestjs/common';
import { type DataSource, type EntityManager, type FindOptionsWhere, IsNull, Not } from 'typeorm';
import { z } from 'zod';
import type { AuditDetail } from '../../audit/audit-event.entity.js';
import { AuditLog } from '../../audit/audit.module.js';
import { heldBy } from '../../auth/bearer/bearer.guard.js';
import { tableOf, USHER_DATA_SOURCE } from '../../database/data-source.js';
import { databaseNow, inTransaction } from '../../database/sql.js';
import { runSql } from '../../database/statements/statement.js';
import { storedRequestId } from '../../http/exchange.js';
import { conflict, notFound, type Problem, validated } from '../../http/problem.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { type Actor, fitting } from '../../values/actor.js';
import { ID, newId } from '../../values/identifier.js';
import { RetryRun } from '../queue/retry-run.js';
import { CRITERIA, type WebhookCriteria } from '../search/webhook-criteria.js';
import { WebhookSearch } from '../search/webhook-search.js';
import { Webhook } from '../webhook.entity.js';
import type { ResendOptions } from '../webhook.service.js';
import { time } from '../webhook-view.js';
import { checkedRequest, type ResendOutcome, resendView, type ResendView } from './resend.schemas.js';
import { ResendWork, selectedBy } from './resend-work.js';
import { ResentWebhook, WebhookResend } from './webhook-resend.entity.js';

/** Whose webhooks: of one client or of all (null), and of one resource owner or of all (null). */
export interface ResendHolder {
  clientId: string | null;
  ownerId: string | null;
}

/** How {@link WebhookResends.start} runs. */
export interface StartOptions extends ResendOptions {
  /** Wait while the client has as many pending webhooks as the limit. Default: false, as for other resends of operators. */
  isLimited?: boolean;
}

const CHOSEN = z.object({ webhookIds: z.array(z.string()) });

type Counts = Omit<ResendOutcome, 'refusals' | 'unknown'> & ResendOutcome['refusals'];

/** Sends many FAILED webhooks again, in the background. A request is a row, so a crash only delays it. */
@Injectable()
export class WebhookResends {
  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    private readonly retryRun: RetryRun,
    private readonly work: ResendWork,
    private readonly search: WebhookSearch,
    private readonly audit: AuditLog,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {}

  /**
   * Starts to resend the webhooks that fit `input`, a `ResendRequest`, and returns at once. Each is resent as
   * `WebhookService.resend` does, unless another one of its reference is newer, pending or delivered. 400 for an invalid field.
   */
  async start(holder: ResendHolder, input: unknown, options: StartOptions = {}): Promise<ResendView> {
    const row = await this.insert({ ...heldBy(holder), ...checkedRequest(input) }, options);
    this.retryRun.resend(row.id);
    return resendView(await this.withOutcome(row));
  }

  /** The same for an operator: for all FAILED webhooks that fit the criteria. Returns the id of the request. */
  async startFor(criteria: Omit<WebhookCriteria, 'status'>, options: StartOptions = {}): Promise<string> {
    validated(CRITERIA, criteria);
    const { clientId, referenceId, host, reason, isSentAgain, since, until, endedSince = null } = criteria;
    const { count, isMore } = await this.search.count({ ...criteria, status: 'FAILED' });
    const times = { madeSince: since, madeUntil: until, since: endedSince };
    const wanted = { clientId, referenceId, host, reason, isSentAgain, ...times, selected: isMore ? null : count };
    const { id } = await this.insert(wanted, options);
    this.retryRun.resend(id);
    return id;
  }

  /** Resends these webhooks for an operator now, as far as they are FAILED. Returns the id of the request. */
  async resendChosen(webhookIds: string[], options: StartOptions = {}): Promise<string> {
    validated(CHOSEN, { webhookIds });
    const { id } = await this.insert({ webhookIds, selected: webhookIds.length }, options);
    await this.work.run(id, () => false);
    return id;
  }

  /** A request as operators see it. 404 if there is none with this id. */
  async get(id: string): Promise<WebhookResend & ResendOutcome> {
    return this.withOutcome(await found(this.dataSource.manager, { id }));
  }

  /**
   * Like {@link start}, but works in this process, until the request is finished or has to wait because it is limited.
   * `onProgress` gets the progress. If the process ends before, a worker continues.
   */
  async run(
    holder: ResendHolder,
    input: unknown,
    options: StartOptions = {},
    onProgress: (row: WebhookResend) => void = () => undefined,
  ): Promise<ResendView> {
    const { id } = await this.insert({ ...heldBy(holder), ...checkedRequest(input) }, options);
    for (;;) {
      const progress = await this.work.batch(id);
      const row = await found(this.dataSource.manager, { id });
      onProgress(row);
      if (progress !== 'going-on') return resendView(await this.withOutcome(row));
    }
  }

  /** How far a request is. 404 if there is none with this id, or if it is of another client or owner, or an operator's. */
  async show(holder: ResendHolder, id: string): Promise<ResendView> {
    const held = { ...heldBy(holder), ...(holder.clientId !== null && { selected: Not(IsNull()) }) };
    return resendView(await this.withOutcome(await found(this.dataSource.manager, { ...held, id })));
  }

  /** Adds what became of each webhook until now. The cost grows with the number of those that were sent again. */
  private async withOutcome(row: WebhookResend): Promise<WebhookResend & ResendOutcome> {
    const { rows } = await runSql(
      this.dataSource,
      (parameter) => `
        SELECT COUNT(CASE WHEN r.refusal IS NULL AND w.status = 'SUCCESS' THEN 1 END) AS "delivered",
          COUNT(CASE WHEN r.refusal IS NULL AND w.status = 'FAILED' THEN 1 END) AS "failedAgain",
          COUNT(CASE WHEN r.refusal IS NULL AND w.status = 'PENDING' THEN 1 END) AS "pending",
          COUNT(CASE WHEN r.refusal = 'FAILED' THEN 1 END) AS "newer",
          COUNT(CASE WHEN r.refusal = 'PENDING' THEN 1 END) AS "otherPending",
          COUNT(CASE WHEN r.refusal = 'SUCCESS' THEN 1 END) AS "otherDelivered",
          COUNT(CASE WHEN r.refusal = 'NO_URL' THEN 1 END) AS "noNotifyUrl"
        FROM ${tableOf(this.dataSource, ResentWebhook)} r
        LEFT JOIN ${tableOf(this.dataSource, Webhook)} w ON w.id = r.webhook_id
        WHERE r.resend_id = ${parameter(row.id)}`,
    );
    const counts = Object.entries(rows[0] ?? {}).map(([name, count]) => [name, Number(count)] as const);
    const { delivered, failedAgain, pending, ...refusals } = Object.fromEntries(counts) as Counts;
    const known = counts.reduce((sum, [, count]) => sum + count, 0);
    // The counts can be newer than the row, which was read before.
    const unknown = Math.max(0, row.resent + row.refused - known);
    return { ...row, delivered, failedAgain, pending, refusals, unknown };
  }

  /**
   * Ends a request. What it has not sent again stays FAILED, and another request may resend it. 404 if there is none with this
   * id, 409 if it has ended.
   */
  async stop(id: string, actor: Actor = this.options.actor): Promise<void> {
    await inTransaction(this.dataSource, async (manager) => {
      // Waits for the batch that runs, which has locked the row.
      const row = await found(manager, { id }, { mode: 'pessimistic_write' });
      if (row.finishedAt !== null) throw conflict('this request has ended; there is nothing to stop');
      await manager.update(WebhookResend, { id }, { isStopped: true, finishedAt: await databaseNow(manager) });
      const { selected, resent, refused } = row;
      const detail = { resent, refused, ...(selected !== null && { selected }) };
      await this.audit.record({ action: 'resend.stopped', subject: `resend:${id}`, actor, detail }, manager);
    });
  }

  private async insert(
    wanted: Partial<WebhookResend>,
    { isLimited = false, requestId = null, actor = this.options.actor }: StartOptions,
  ): Promise<WebhookResend> {
    const { manager } = this.dataSource;
    const { name, address } = fitting(actor);
    const createdAt = await databaseNow(manager);
    const row: WebhookResend = {
      ...ALL_FAILED,
      ...wanted,
      id: newId(this.options.environment, createdAt),
      isLimited,
      isStopped: false,
      doneFromId: null,
      resent: 0,
      refused: 0,
      actor: name,
      actorAddress: address,
      requestId: storedRequestId(requestId),
      createdAt,
      finishedAt: null,
    };
    if (wanted.selected === undefined) row.selected = await manager.countBy(Webhook, selectedBy(row));
    return inTransaction(this.dataSource, async (manager) => {
      await manager.insert(WebhookResend, row);
      const subject = `resend:${row.id}`;
      await this.audit.record({ action: 'resend.started', subject, actor, detail: detailOf(row) }, manager);
      return row;
    });
  }
}

/** The request that matches all of `where`; else 404. */
async function found(
  manager: EntityManager,
  where: FindOptionsWhere<WebhookResend> & { id: string },
  lock?: { mode: 'pessimistic_write' },
): Promise<WebhookResend> {
  const row = ID.test(where.id) ? await manager.findOne(WebhookResend, { where, ...(lock && { lock }) }) : null;
  if (row) return row;
  throw unknownResend(where.id);
}

const ALL_FAILED = {
  clientId: null,
  ownerId: null,
  referenceId: null,
  since: null,
  until: null,
  host: null,
  reason: null,
  isSentAgain: null,
  madeSince: null,
  madeUntil: null,
  webhookIds: null,
  selected: null,
};

/** What it selects, without the fields that are not set. */
function detailOf(row: WebhookResend): AuditDetail {
  const { clientId, ownerId, referenceId, host, reason, selected } = row;
  const since = time(row.since ?? row.madeSince);
  const until = time(row.until ?? row.madeUntil);
  const all = { client: clientId, owner: ownerId, reference: referenceId, host, reason, selected, since, until };
  const set = Object.entries(all).filter(([, value]) => value !== null);
  return Object.fromEntries(set) as AuditDetail;
}

export const unknownResend = (id: string): Problem => notFound(`there is no resend ${String(id).slice(0, 64)}`);
