import { Inject, Injectable } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import { USHER_DATA_SOURCE } from '../../database/data-source.js';
import { databaseNow } from '../../database/sql.js';
import { notFound } from '../../http/problem.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { type Actor, fitting } from '../../values/actor.js';
import { ID, newId } from '../../values/identifier.js';
import { RetryRun } from '../queue/retry-run.js';
import { Webhook } from '../webhook.entity.js';
import { checkedRequest, resendView, type ResendView } from './resend.schemas.js';
import { ResendWork, selectedBy } from './resend-work.js';
import { WebhookResend } from './webhook-resend.entity.js';

/** Whose webhooks: of one client or of all (null), and of one resource owner or of all (null). */
export interface ResendHolder {
  clientId: string | null;
  ownerId: string | null;
}

/** How {@link WebhookResends.start} runs. */
export interface StartOptions {
  /** Wait while the client has as many pending webhooks as the limit. Default: false, as for other resends of operators. */
  isLimited?: boolean;
  /** Shown in the log lines of the deliveries. */
  requestId?: string | null;
  /** Who asks for it, for the audit. Default: the application, `host`. */
  actor?: Actor | undefined;
}

/** Sends many FAILED webhooks again, in the background. A request is a row, so a crash only delays it. */
@Injectable()
export class WebhookResends {
  constructor(
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
    private readonly retryRun: RetryRun,
    private readonly work: ResendWork,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {}

  /**
   * Starts to resend the webhooks that fit `input`, a {@link ResendRequest}, and returns at once. Each is resent as
   * `WebhookService.resend` does, unless another one of its reference is newer, pending or delivered. 400 for an invalid field.
   */
  async start(holder: ResendHolder, input: unknown, options: StartOptions = {}): Promise<ResendView> {
    const row = await this.insert(holder, input, options);
    this.retryRun.resend(row.id);
    return resendView(row);
  }

  /**
   * The same in this process, and returns when it is finished, or has to wait because it is limited. `onProgress` gets what is
   * done so far. If the process ends before, a worker goes on.
   */
  async run(
    holder: ResendHolder,
    input: unknown,
    options: StartOptions = {},
    onProgress: (view: ResendView) => void = () => undefined,
  ): Promise<ResendView> {
    const { id } = await this.insert(holder, input, options);
    for (;;) {
      const progress = await this.work.batch(id);
      const view = await this.show(EVERYBODY, id);
      onProgress(view);
      if (progress !== 'going-on') return view;
    }
  }

  /** How far a request is. 404 if there is none with this id, or if it is of another client or owner. */
  async show({ clientId, ownerId }: ResendHolder, id: string): Promise<ResendView> {
    const holder = { ...(clientId !== null && { clientId }), ...(ownerId !== null && { ownerId }) };
    const row = ID.test(id) ? await this.dataSource.manager.findOneBy(WebhookResend, { ...holder, id }) : null;
    if (!row) throw notFound(`there is no resend ${id.slice(0, 64)}`);
    return resendView(row);
  }

  private async insert(
    holder: ResendHolder,
    input: unknown,
    { isLimited = false, requestId = null, actor = this.options.actor }: StartOptions,
  ): Promise<WebhookResend> {
    const { since, until, reference } = checkedRequest(input);
    const { manager } = this.dataSource;
    const { name, address } = fitting(actor);
    const createdAt = await databaseNow(manager);
    const row: WebhookResend = {
      ...holder,
      id: newId(this.options.environment, createdAt),
      referenceId: reference ?? null,
      since: since === undefined ? null : Date.parse(since),
      until: until === undefined ? null : Date.parse(until),
      isLimited,
      doneFromId: null,
      selected: 0,
      resent: 0,
      refused: 0,
      actor: name,
      actorAddress: address,
      requestId,
      createdAt,
      finishedAt: null,
    };
    row.selected = await manager.countBy(Webhook, selectedBy(row));
    await manager.insert(WebhookResend, row);
    return row;
  }
}

const EVERYBODY: ResendHolder = { clientId: null, ownerId: null };
