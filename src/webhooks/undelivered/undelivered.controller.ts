import { Readable } from 'node:stream';
import { Body, Get, Headers, HttpCode, Inject, Param, Post, Query, Req, Res } from '@nestjs/common';
import { ClientController, CurrentHolder, type Holder } from '../../auth/bearer/bearer.guard.js';
import { type HttpRequest, type HttpResponse, RequestActor, RequestId, sendStream } from '../../http/exchange.js';
import { countRequest, type MinuteLimit } from '../../http/minute-limit.js';
import { TakesQuery } from '../../http/problem.js';
import { Limits } from '../../limits/limits.module.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import type { Actor } from '../../values/actor.js';
import { type UndeliveredNotification, UndeliveredWebhooks } from './undelivered-webhooks.js';
import { WebhookResends } from './webhook-resends.js';

/** Requests to resend: each of them reads all FAILED webhooks of the client. */
export const RESEND_LIMIT: MinuteLimit = { name: 'resend-requests', count: 10, what: 'resends' };

/** Reads and resends what a client has not received. Registered before the routes of single webhooks. */
@ClientController('/')
export class UndeliveredController {
  constructor(
    private readonly undelivered: UndeliveredWebhooks,
    private readonly resends: WebhookResends,
    private readonly limits: Limits,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {}

  @Get('webhooks/undelivered')
  @TakesQuery()
  async read(
    @CurrentHolder() holder: Holder,
    @Query() query: unknown,
    @Res() response: HttpResponse,
    @Headers('accept') accept = '',
  ) {
    const body = accepts(accept, NDJSON) ? await this.lines(holder, query) : await this.undelivered.page(holder, query);
    response.header('Cache-Control', 'no-store');
    if (!(body instanceof Readable)) return void response.send(body);
    response.header('Content-Type', NDJSON);
    sendStream(response, body);
  }

  /** Continues in the background; `Location` is the URL of its progress. */
  @Post('webhooks/resend')
  @HttpCode(202)
  async resend(
    @CurrentHolder() holder: Holder,
    @Body() body: unknown,
    @RequestId() requestId: string,
    @RequestActor() actor: Actor,
    @Req() request: HttpRequest,
    @Res({ passthrough: true }) response: HttpResponse,
  ) {
    countRequest(this.limits, RESEND_LIMIT, holder.clientId);
    const view = await this.resends.start(holder, body, { isLimited: true, requestId, actor });
    response.header('Location', `${this.baseUrl(request)}/webhook-resends/${view.id}`);
    return view;
  }

  @Get('webhook-resends/:id')
  show(@CurrentHolder() holder: Holder, @Param('id') id: string) {
    return this.resends.show(holder, id);
  }

  /** The first lines are read before the answer begins, so that its errors are answered as problems. */
  private async lines(holder: Holder, query: unknown) {
    const pages = this.undelivered.pages(holder, query);
    return Readable.from(linesOf(pages, await pages.next()), { objectMode: false });
  }

  /** Without a public base address, the path that the client used. */
  private baseUrl({ url, originalUrl = url }: HttpRequest) {
    return this.options.publicUrl ?? originalUrl.replace(/\/webhooks\/resend\/?(\?.*)?$/, '');
  }
}

const NDJSON = 'application/x-ndjson';

/** Whether an Accept header names a media type, and not with the weight 0 (RFC 9110 §12.4.2). */
const accepts = (header: string, type: string): boolean =>
  header.split(',').some((range) => {
    const [name, ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
    return name === type && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
  });

type Page = UndeliveredNotification[];

async function* linesOf(pages: AsyncGenerator<Page, void>, first: IteratorResult<Page, void>) {
  for (let page = first; !page.done; page = await pages.next())
    yield page.value.map((line) => `${JSON.stringify(line)}\n`).join('');
}
