import { Get, Param, Post, Query, Req, Res } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { RequestActor } from '../../../audit/request-actor.js';
import { ConnectedApplications } from '../../../auth/authorize/connected-applications.js';
import { notFound } from '../../../http/problem.js';
import type { Member } from '../../../members/member.entity.js';
import { MembersService } from '../../../members/members.service.js';
import type { Actor } from '../../../values/actor.js';
import { FORM_ROUTE } from '../../request-bodies.js';
import { textOf } from '../fields/fields.js';
import { type Refusal, refusalOf } from '../fields/refusal.js';
import { ConsoleRoutes } from '../frame/console-route.js';
import { checkConfirmed, formFields } from '../frame/form.js';
import { sendConsolePage } from '../frame/frame.js';
import { MemberDirectory } from './member-directory.js';
import { memberPage, memberPath, membersPage } from './members-page.js';

const PAGE_SIZE = 50;

/** Each change of a member by its form, with the message when it is done. */
const CHANGES: Record<string, string> = {
  create: 'The member is created.',
  'set-password': 'The password is set.',
  disable: 'The member is disabled.',
  enable: 'The member is enabled.',
};

/** The built-in members. The server has no others: only an application that embeds Usher can have members of its own. */
@ConsoleRoutes('ops/members')
export class MembersController {
  constructor(
    private readonly members: MembersService,
    private readonly directory: MemberDirectory,
    private readonly applications: ConnectedApplications,
  ) {}

  @Get()
  list(@Query() query: Record<string, unknown>, @Req() request: FastifyRequest, @Res() reply: FastifyReply) {
    return this.sendList(request, reply, query);
  }

  @Post()
  @RouteConfig(FORM_ROUTE)
  async create(
    @RequestActor() actor: Actor,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const given = formFields(request);
    const { name = '', password = '' } = given;
    const refusal = await refusalOf('create', given, async () => {
      const { id } = await this.members.create(name.trim(), password, actor);
      void reply.redirect(`${memberPath(id)}?done=create`, 303);
    });
    if (refusal) await this.sendList(request, reply, {}, refusal);
  }

  @Get(':id')
  async show(
    @Param('id') id: string,
    @Query('done') done: unknown,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    await this.sendMember(await this.get(id), request, reply, { done: textOf(done) });
  }

  @Post(':id/:change')
  @RouteConfig(FORM_ROUTE)
  async change(
    @Param() { id = '', change = '' }: Record<string, string>,
    @RequestActor() actor: Actor,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const given = formFields(request);
    const member = await this.get(id);
    const refusal = await refusalOf(change, given, () => this.make(change, member, given, actor));
    if (refusal) return this.sendMember(member, request, reply, { refusal });
    void reply.redirect(`${memberPath(id)}?done=${change}`, 303);
  }

  private async make(change: string, { name }: Member, given: Record<string, string>, actor: Actor): Promise<Member> {
    if (change === 'set-password') return this.members.setPassword(name, given.password ?? '', actor);
    if (change === 'enable') return this.members.setDisabled(name, false, actor);
    if (change !== 'disable') throw notFound('there is no such change of a member');
    checkConfirmed(given);
    return this.members.setDisabled(name, true, actor);
  }

  private async get(id: string): Promise<Member> {
    const member = await this.directory.find(id);
    if (!member) throw notFound('there is no such member');
    return member;
  }

  private async sendList(
    request: FastifyRequest,
    reply: FastifyReply,
    { q, after }: Record<string, unknown>,
    refusal: Refusal | null = null,
  ): Promise<void> {
    const [query, behind] = [textOf(q), textOf(after)];
    const shown = { query, page: await this.directory.page(query, behind, PAGE_SIZE), isFirst: behind === '', refusal };
    const body = membersPage(request, shown);
    const status = refusal?.problem.getStatus() ?? 200;
    sendConsolePage(request, reply, { title: 'Members', section: 'members', body }, status);
  }

  private async sendMember(
    member: Member,
    request: FastifyRequest,
    reply: FastifyReply,
    { done = '', refusal = null }: { done?: string; refusal?: Refusal | null },
  ): Promise<void> {
    const applications = await this.applications.list(member.id);
    const text = Object.hasOwn(CHANGES, done) ? (CHANGES[done] ?? null) : null;
    const body = memberPage(request, { member, applications, done: text, refusal });
    const status = refusal?.problem.getStatus() ?? 200;
    sendConsolePage(request, reply, { title: member.name, section: 'members', body }, status);
  }
}
