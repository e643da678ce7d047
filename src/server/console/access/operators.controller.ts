import { Get, Param, Post, Req, Res } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { RequestActor } from '../../../audit/request-actor.js';
import { conflict, Problem } from '../../../http/problem.js';
import { type Operator, type OperatorRole } from '../../../operators/operator.entity.js';
import { OperatorsService } from '../../../operators/operators.service.js';
import type { Actor } from '../../../values/actor.js';
import { randomAlphanumeric } from '../../../values/identifier.js';
import { FORM_ROUTE } from '../../request-bodies.js';
import { ConsoleRoutes } from '../frame/console-route.js';
import { formFields } from '../frame/form.js';
import { sendConsolePage } from '../frame/frame.js';
import { signedInOf } from '../frame/signed-in.js';
import { newPasswordPage, operatorPage, operatorsPage } from './operators-page.js';

/** About 119 random bits. */
const PASSWORD_LENGTH = 20;

/** The people who use the console. */
@ConsoleRoutes('ops/operators')
export class OperatorsController {
  constructor(private readonly operators: OperatorsService) {}

  @Get()
  async list(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    await this.sendList(request, reply, { name: '', refusal: null });
  }

  /** The password is made here, and only this response shows it. */
  @Post()
  @RouteConfig(FORM_ROUTE)
  async create(
    @RequestActor() actor: Actor,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { name = '', role = '' } = formFields(request);
    const password = randomAlphanumeric(PASSWORD_LENGTH);
    try {
      const operator = await this.operators.create({ name, password, role: role as OperatorRole }, actor);
      sendPassword(request, reply, { operator, password, status: 201 });
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      await this.sendList(request, reply, { name, refusal: error });
    }
  }

  @Get(':name')
  async show(@Param('name') name: string, @Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    const operator = await this.operators.get(name);
    const body = operatorPage(request, operator, isOwn(request, operator.name));
    sendConsolePage(request, reply, { title: `Operator ${operator.name}`, section: 'operators', body });
  }

  @Post(':name/role')
  @RouteConfig(FORM_ROUTE)
  async setRole(
    @Param('name') name: string,
    @RequestActor() actor: Actor,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { role = '' } = formFields(request);
    refuseOwn(request, name);
    toOperator(reply, await this.operators.setRole(name, role as OperatorRole, actor));
  }

  @Post(':name/disable')
  @RouteConfig(FORM_ROUTE)
  async disable(
    @Param('name') name: string,
    @RequestActor() actor: Actor,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    formFields(request);
    refuseOwn(request, name);
    toOperator(reply, await this.operators.setDisabled(name, true, actor));
  }

  @Post(':name/enable')
  @RouteConfig(FORM_ROUTE)
  async enable(
    @Param('name') name: string,
    @RequestActor() actor: Actor,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    formFields(request);
    toOperator(reply, await this.operators.setDisabled(name, false, actor));
  }

  @Post(':name/password')
  @RouteConfig(FORM_ROUTE)
  async setPassword(
    @Param('name') name: string,
    @RequestActor() actor: Actor,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    formFields(request);
    refuseOwn(request, name);
    const password = randomAlphanumeric(PASSWORD_LENGTH);
    const operator = await this.operators.setPassword(name, password, actor);
    sendPassword(request, reply, { operator, password, status: 200 });
  }

  private async sendList(
    request: FastifyRequest,
    reply: FastifyReply,
    { name, refusal }: { name: string; refusal: Problem | null },
  ): Promise<void> {
    const view = { operators: await this.operators.list(), first: this.operators.firstName, name, refusal };
    const body = operatorsPage(request, view);
    sendConsolePage(request, reply, { title: 'Operators', section: 'operators', body }, refusal?.getStatus() ?? 200);
  }
}

const isOwn = (request: FastifyRequest, name: string): boolean =>
  signedInOf(request)?.name.toLowerCase() === name.toLowerCase();

/** So that nobody locks themselves out. */
function refuseOwn(request: FastifyRequest, name: string): void {
  if (isOwn(request, name))
    throw conflict('this is your own account; another operator can disable it, change its role or its password');
}

function toOperator(reply: FastifyReply, { name }: Operator): void {
  void reply.redirect(`/ops/operators/${encodeURIComponent(name)}`, 303);
}

function sendPassword(
  request: FastifyRequest,
  reply: FastifyReply,
  { operator, password, status }: { operator: Operator; password: string; status: number },
): void {
  const body = newPasswordPage(operator, password);
  sendConsolePage(request, reply, { title: `Password of ${operator.name}`, section: 'operators', body }, status);
}
