import { Readable } from 'node:stream';
import {
  Body,
  Controller,
  Get,
  HttpCode,
  Inject,
  Param,
  Post,
  Query,
  Req,
  Res,
  UseFilters,
  UseGuards,
} from '@nestjs/common';
import { type HttpRequest, type HttpResponse, RequestActor, RequestId, sendStream } from '../../http/exchange.js';
import { BearerGuard, CurrentClient, CurrentResourceOwner } from '../../auth/bearer/bearer.guard.js';
import type { Client } from '../../clients/client.entity.js';
import { ProblemFilter } from '../../http/error-response.js';
import { UsherRoutes } from '../../http/oauth-route.js';
import { KNOWN_QUERY, TakesQuery, type Problem, tooManyPerMinute } from '../../http/problem.js';
import { type Limiter, limitKey } from '../../limits/limiter.js';
import { Limits } from '../../limits/limits.module.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import type { Actor } from '../../values/actor.js';
import type { Rate } from '../../values/duration.js';
import type { ResendView } from './resend.schemas.js';
import { type UndeliveredNotification, UndeliveredWebhooks } from './undelivered-webhooks.js';
import { WebhookResends } from './webhook-resends.js';

/** Requests to resend, per client: each of them reads all FAILED webhooks of the client. */
const RESEND_LIMIT: Rate = { count: 10, seconds: 60 };

/** What a client has not received: to read it, and to have it sent again. Before the routes of single webhooks. */
@Controller()
@UsherRoutes()
@UseFilters(ProblemFilter)
@UseGuards(BearerGuard, KNOWN_QUERY)
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
  async read(
    @CurrentClient() client: Client,
    @CurrentResourceOwner() ownerId: string | null,
    @Query() query: unknown,
    @Res() response: HttpResponse,
  ): Promise<void> {
    const pages = this.undelivered.pages({ clientId: client.id, ownerId }, query);
    const first = await pages.next();
    response.header('Content-Type', 'application/x-ndjson');
    response.header('Cache-Control', 'no-store');
    sendStream(response, Readable.from(lines(first, pages), { objectMode: false }));
  }

  /** Goes on in the background; `Location` is where its progress is seen. */
  @Post('webhooks/resend')
  @HttpCode(202)
  async resend(
    @CurrentClient() client: Client,
    @CurrentResourceOwner() ownerId: string | null,
    @Body() body: unknown,
    @RequestId() requestId: string,
    @RequestActor() actor: Actor,
    @Req() request: HttpRequest,
    @Res({ passthrough: true }) response: HttpResponse,
  ): Promise<ResendView> {
    const wait = this.limiter.count(limitKey(client.id));
    if (wait > 0) throw tooManyResends(wait);
    const view = await this.resends.start({ clientId: client.id, ownerId }, body, {
      isLimited: true,
      requestId,
      actor,
    });
    response.header('Location', `${this.baseUrl(request)}/webhook-resends/${view.id}`);
    return view;
  }

  @Get('webhook-resends/:id')
  show(
    @CurrentClient() client: Client,
    @CurrentResourceOwner() ownerId: string | null,
    @Param('id') id: string,
  ): Promise<ResendView> {
    return this.resends.show({ clientId: client.id, ownerId }, id);
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

export const tooManyResends = (waitSeconds?: number): Problem =>
  tooManyPerMinute(RESEND_LIMIT.count, 'resends', waitSeconds);
