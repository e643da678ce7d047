import { Get, Param, Post, Query, Req, Res } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { AuditLog } from '../../../audit/audit.module.js';
import { RequestActor } from '../../../audit/request-actor.js';
import { HOST_LENGTH } from '../../../webhooks/contact/failing-host.entity.js';
import { notFound, Problem, unprocessable } from '../../../http/problem.js';
import type { Actor } from '../../../values/actor.js';
import { TestNotifications, type TestResult } from '../../../webhooks/api/test-notifications.js';
import { FORM_ROUTE } from '../../request-bodies.js';
import { LAST_DAY, type Range } from '../figures/periods.js';
import { ConsoleRoutes } from '../frame/console-route.js';
import { formFields } from '../frame/form.js';
import { sendConsolePage } from '../frame/frame.js';
import { receiverPage, type ReceiverPage } from './receiver-page.js';
import { ReceiversData } from './receivers-data.js';
import { rangeOf, receiversPage } from './receivers-page.js';

/** The hosts that notifications are sent to. */
@ConsoleRoutes('ops/receivers')
export class ReceiversController {
  constructor(
    private readonly data: ReceiversData,
    private readonly tests: TestNotifications,
    private readonly audit: AuditLog,
  ) {}

  @Get()
  async list(
    @Query('range') given: unknown,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const range = rangeOf(given);
    const body = receiversPage(await this.data.list(range), range);
    sendConsolePage(request, reply, { title: 'Receivers', section: 'receivers', body, isLive: true });
  }

  @Get(':host')
  async show(
    @Param('host') host: string,
    @Query('range') range: unknown,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    await this.send(request, reply, { host, range: rangeOf(range), test: null });
  }

  /** Its result is not stored, so the answer itself shows it. */
  @Post(':host/test')
  @RouteConfig(FORM_ROUTE)
  async test(
    @Param('host') host: string,
    @RequestActor() actor: Actor,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { client = '' } = formFields(request);
    checkHost(host);
    try {
      const test = { result: await this.sendTest(host, client, actor) };
      await this.send(request, reply, { host, range: LAST_DAY, test });
    } catch (error) {
      if (!(error instanceof Problem) || error.getStatus() >= 500) throw error;
      const test = { refusal: error.detail };
      await this.send(request, reply, { host, range: LAST_DAY, test }, error.getStatus());
    }
  }

  private async sendTest(host: string, client: string, actor: Actor): Promise<TestResult> {
    const url = await this.data.notifyUrlAt(host, client);
    if (url === null) throw unprocessable('The client has no Notify URL at this host; choose another one');
    const result = await this.tests.sendTo({ id: client }, url);
    const detail = { host, outcome: result.outcome };
    await this.audit.record({ action: 'webhook.tested', subject: `client:${client}`, actor, detail });
    return result;
  }

  private async send(
    request: FastifyRequest,
    reply: FastifyReply,
    { host, range, test }: { host: string; range: Range; test: ReceiverPage['test'] },
    status = 200,
  ): Promise<void> {
    checkHost(host);
    const body = receiverPage(request, { host, range, test, receiver: await this.data.of(host, range) });
    sendConsolePage(request, reply, { title: `Receiver ${host}`, section: 'receivers', body }, status);
  }
}

/** No host of a URL contains a space or a control character, and Postgres refuses NUL. */
function checkHost(host: string): void {
  if (host.length > HOST_LENGTH || /[\s\p{Cc}]/u.test(host)) throw notFound('there is no such receiver');
}
