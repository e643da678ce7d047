import { Readable } from 'node:stream';
import { Body, Get, HttpCode, Inject, Param, Post, Query, Req, Res } from '@nestjs/common';
import { ClientController, CurrentClient, CurrentHolder, type Holder } from '../../auth/bearer/bearer.guard.js';
import type { Client } from '../../clients/client.entity.js';
import { type HttpRequest, type HttpResponse, RequestActor, RequestId, sendStream } from '../../http/exchange.js';
import { TakesQuery, type Problem, tooManyPerMinute } from '../../http/problem.js';
import { type Limiter, limitKey } from '../../limits/limiter.js';
import { Limits } from '../../limits/limits.module.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import type { Actor } from '../../values/actor.js';
import type { Rate } from '../../values/duration.js';
import type { ResendView } from '../undelivered/resend.schemas.js';
import { type UndeliveredNotification, UndeliveredWebhooks } from '../undelivered/undelivered-webhooks.js';
import { WebhookResends } from '../undelivered/webhook-resends.js';
import type { WebhookHealth } from '../webhook-health.js';
import type { ClientWebhook, WebhookPage, WebhookStory } from './client-view.js';
import { ClientWebhooks } from './client-webhooks.js';
import { type TestResult, TestNotifications } from './test-notifications.js';

/** Requests to resend, per client: each of them reads all FAILED webhooks of the client. */
const RESEND_LIMIT: Rate = { count: 10, seconds: 60 };

/** What a client has not received: to read it, and to have it sent again. Before the routes of single webhooks. */
@ClientController('/')
export class UndeliveredController {
  private readonly limiter: Limiter;

  constructor(
    private readonly undelivered: UndeliveredWebhooks,
    private readonly resends: WebhookResends,
    limits: Limits,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {
    this.limiter = limits.limiter('resend-requests', RESEND_LIMIT);
  }

  /** The first page is read before the answer begins, so that its errors are answered as problems. */
  @Get('webhooks/undelivered')
  @TakesQuery()
  async read(@CurrentHolder() holder: Holder, @Query() query: unknown, @Res() response: HttpResponse): Promise<void> {
    const pages = this.undelivered.pages(holder, query);
    const first = await pages.next();
    response.header('Content-Type', 'application/x-ndjson');
    response.header('Cache-Control', 'no-store');
    sendStream(response, Readable.from(lines(first, pages), { objectMode: false }));
  }

  /** Goes on in the background; `Location` is where its progress is seen. */
  @Post('webhooks/resend')
  @HttpCode(202)
  async resend(
    @CurrentHolder() holder: Holder,
    @Body() body: unknown,
    @RequestId() requestId: string,
    @RequestActor() actor: Actor,
    @Req() request: HttpRequest,
    @Res({ passthrough: true }) response: HttpResponse,
  ): Promise<ResendView> {
    const wait = this.limiter.count(limitKey(holder.clientId));
    if (wait > 0) throw tooManyResends(wait);
    const view = await this.resends.start(holder, body, {
      isLimited: true,
      requestId,
      actor,
    });
    response.header('Location', `${this.baseUrl(request)}/webhook-resends/${view.id}`);
    return view;
  }

  @Get('webhook-resends/:id')
  show(@CurrentHolder() holder: Holder, @Param('id') id: string): Promise<ResendView> {
    return this.resends.show(holder, id);
  }

  /** Without a public base address, the path that the client used. */
  private baseUrl({ url, originalUrl = url }: HttpRequest): string {
    return this.options.publicUrl ?? originalUrl.replace(/\/webhooks\/resend\/?(\?.*)?$/, '');
  }
}

type Pages = AsyncGenerator<UndeliveredNotification[], void>;

async function* lines(first: IteratorResult<UndeliveredNotification[], void>, pages: Pages): AsyncGenerator<string> {
  if (first.done) return;
  yield textOf(first.value);
  for await (const page of pages) yield textOf(page);
}

const textOf = (page: UndeliveredNotification[]): string => page.map((line) => `${JSON.stringify(line)}\n`).join('');

/** A client's own webhooks and their attempts. */
@ClientController('webhooks')
export class WebhooksController {
  constructor(
    private readonly webhooks: ClientWebhooks,
    private readonly tests: TestNotifications,
  ) {}

  @Get()
  @TakesQuery()
  page(@CurrentHolder() holder: Holder, @Query() query: unknown): Promise<WebhookPage> {
    return this.webhooks.page(holder, query);
  }

  /** Only with a token of the client itself. It stands before `:id`, which Express would match first. */
  @Get('health')
  health(@CurrentClient() client: Client): Promise<WebhookHealth> {
    return this.webhooks.health(client.id);
  }

  @Get(':id')
  show(@CurrentHolder() holder: Holder, @Param('id') id: string): Promise<WebhookStory> {
    return this.webhooks.show(holder, id);
  }

  /** Only with a token of the client itself. Always 200; the result says whether the receiver accepted the test. */
  @Post('test')
  @HttpCode(200)
  test(@CurrentClient() client: Client, @Body() body: unknown): Promise<TestResult> {
    return this.tests.send(client, body);
  }

  /** Only for a FAILED webhook (specification 6.3). */
  @Post(':id/resend')
  resend(
    @CurrentHolder() holder: Holder,
    @Param('id') id: string,
    @RequestId() requestId: string,
    @RequestActor() actor: Actor,
  ): Promise<ClientWebhook> {
    return this.webhooks.resend(holder, id, { requestId, actor });
  }
}

export const tooManyResends = (waitSeconds?: number): Problem =>
  tooManyPerMinute(RESEND_LIMIT.count, 'resends', waitSeconds);
