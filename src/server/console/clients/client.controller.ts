import { Get, Param, Post, Query, Req, Res } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { RequestActor } from '../../../audit/request-actor.js';
import { SecretRotation } from '../../../clients/secrets/secret-rotation.js';
import { notFound, unprocessable } from '../../../http/problem.js';
import type { Actor } from '../../../values/actor.js';
import { parseDuration } from '../../../values/duration.js';
import { type TestResult, TestNotifications } from '../../../webhooks/api/test-notifications.js';
import { FORM_ROUTE } from '../../request-bodies.js';
import { textOf } from '../fields/fields.js';
import { type Refusal, refusalOf } from '../fields/refusal.js';
import { ConsoleRoutes } from '../frame/console-route.js';
import { checkConfirmed, formFields } from '../frame/form.js';
import { sendConsolePage } from '../frame/frame.js';
import { CHANGES, ClientChanges } from './client-changes.js';
import { ClientDetailsReader } from './client-details.js';
import { clientPath, OVERLAPS } from './client-forms.js';
import { clientPage } from './client-page.js';
import { issuedPage } from './clients-page.js';

/** The page of one client and its forms. */
@ConsoleRoutes('ops/clients/:id')
export class ClientController {
  constructor(
    private readonly details: ClientDetailsReader,
    private readonly changes: ClientChanges,
    private readonly rotation: SecretRotation,
    private readonly tests: TestNotifications,
  ) {}

  @Get()
  show(
    @Param('id') id: string,
    @Query('done') done: unknown,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const change = textOf(done);
    const text = Object.hasOwn(CHANGES, change) ? (CHANGES[change] ?? null) : null;
    return this.send(id, request, reply, { done: text });
  }

  /** Answers with the page itself, because a test is not stored. */
  @Post('test')
  @RouteConfig(FORM_ROUTE)
  async test(@Param('id') id: string, @Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    const given = formFields(request);
    const { client } = await this.details.read(id);
    let test: TestResult | null = null;
    const refusal = await refusalOf('test', given, async () => {
      if (client.notifyUrl === null) throw unprocessable('the client has no Notify URL; set one first');
      test = await this.tests.sendTo(client, client.notifyUrl);
    });
    await this.send(id, request, reply, { test, refusal });
  }

  /** Answers with the page itself, because no other page may ever show the secret. */
  @Post('rotate')
  @RouteConfig(FORM_ROUTE)
  async rotate(
    @Param('id') id: string,
    @RequestActor() actor: Actor,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const given = formFields(request);
    const { client } = await this.details.read(id);
    const refusal = await refusalOf('rotate', given, async () => {
      checkConfirmed(given);
      const [overlap] = OVERLAPS.find(([value]) => value === given.overlap) ?? [];
      if (overlap === undefined) throw unprocessable('choose how long both secrets are valid');
      const revokeTokens = given.revokeTokens === 'yes';
      const rotated = await this.rotation.rotate(id, parseDuration(overlap) ?? 0, { revokeTokens, actor });
      const body = issuedPage({ client, ...rotated, quickStart: null });
      sendConsolePage(request, reply, { title: `New secret of ${client.name}`, section: 'clients', body });
    });
    if (refusal) await this.send(id, request, reply, { refusal });
  }

  /** Every other change; the answer leads to the page that tells of it. */
  @Post(':change')
  @RouteConfig(FORM_ROUTE)
  async change(
    @Param() { id = '', change = '' }: Record<string, string>,
    @RequestActor() actor: Actor,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const given = formFields(request);
    const work = this.changes.find(change);
    if (!work) throw notFound('there is no such change of a client');
    const refusal = await refusalOf(change, given, async () => {
      if (work.isDanger) checkConfirmed(given);
      await work.run(id, given, actor);
    });
    if (refusal) return this.send(id, request, reply, { refusal });
    void reply.redirect(`${clientPath(id)}?done=${change}`, 303);
  }

  private async send(
    id: string,
    request: FastifyRequest,
    reply: FastifyReply,
    shown: { done?: string | null; test?: TestResult | null; refusal?: Refusal | null },
  ): Promise<void> {
    const details = await this.details.read(id);
    const { done = null, test = null, refusal = null } = shown;
    const body = clientPage({ request, details, done, test, refusal });
    const page = { title: details.client.name, section: 'clients', body } as const;
    sendConsolePage(request, reply, page, refusal?.problem.getStatus() ?? 200);
  }
}
