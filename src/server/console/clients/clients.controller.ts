import { Get, Inject, Post, Query, Req, Res } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { RequestActor } from '../../../audit/request-actor.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../../usher.options.js';
import type { Actor } from '../../../values/actor.js';
import { FORM_ROUTE } from '../../request-bodies.js';
import { textOf } from '../fields/fields.js';
import { ConsoleRoutes } from '../frame/console-route.js';
import { formFields } from '../frame/form.js';
import { sendConsolePage } from '../frame/frame.js';
import { ClientDirectory } from './client-directory.js';
import { ClientFactsReader } from './client-facts.js';
import { clientsPage, issuedPage, newClientPage } from './clients-page.js';
import { NewClients } from './new-clients.js';
import { quickStart } from './quick-start.js';

const PAGE_SIZE = 50;

/** The list of clients, and the form for a new one. */
@ConsoleRoutes('ops/clients')
export class ClientsController {
  constructor(
    private readonly directory: ClientDirectory,
    private readonly facts: ClientFactsReader,
    private readonly newClients: NewClients,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {}

  @Get()
  async list(
    @Query() { q, after: given }: Record<string, unknown>,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const query = textOf(q);
    const after = textOf(given) || null;
    const page = await this.directory.page(query, after, PAGE_SIZE);
    const facts = await this.facts.of(page.clients.map(({ id }) => id));
    const body = clientsPage(request, { query, page, facts, isFirst: after === null });
    sendConsolePage(request, reply, { title: 'Clients', section: 'clients', body });
  }

  @Get('new')
  form(@Req() request: FastifyRequest, @Res() reply: FastifyReply): void {
    const body = newClientPage(request, {}, {});
    sendConsolePage(request, reply, { title: 'New client', section: 'clients', body });
  }

  /** Answers with the page itself, because no other page may ever show the secret. */
  @Post()
  @RouteConfig(FORM_ROUTE)
  async create(
    @RequestActor() actor: Actor,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const fields = formFields(request);
    const result = await this.newClients.create(fields, actor);
    if ('faults' in result) {
      const body = newClientPage(request, fields, result.faults);
      return sendConsolePage(request, reply, { title: 'New client', section: 'clients', body }, 422);
    }
    const { client, secret } = result;
    const { environment } = this.options;
    const authUrl = this.options.publicUrl ?? `${request.protocol}://${request.headers.host ?? ''}`;
    const hasNotifyUrl = client.notifyUrl !== null;
    const start = quickStart({ id: client.id, secret, authUrl, environment, hasNotifyUrl });
    const body = issuedPage({ client, secret, quickStart: start, oldValidUntil: null });
    sendConsolePage(request, reply, { title: `Client ${client.name} is created`, section: 'clients', body }, 201);
  }
}
