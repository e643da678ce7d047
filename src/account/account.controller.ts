import { Body, Controller, Get, Headers, HttpCode, Post, Put, UseFilters, UseGuards } from '@nestjs/common';
import { z } from 'zod';
import { RequestActor } from '../http/exchange.js';
import { CurrentClient } from '../auth/bearer/bearer.guard.js';
import type { Client } from '../clients/client.entity.js';
import { parseBasicHeader } from '../http/basic-credentials.js';
import { ProblemFilter } from '../http/error-response.js';
import { UsherRoutes } from '../http/oauth-route.js';
import { KNOWN_QUERY, validated } from '../http/problem.js';
import type { Actor } from '../values/actor.js';
import type { AccountView, ChangedNotifyUrl, NewSecret } from './account-view.js';
import { AccountGuard } from './account.guard.js';
import { ClientAccount } from './client-account.js';

const NoFields = z.strictObject({});

/** A client's own account. It takes the client's id and secret, never an access token. */
@Controller('client')
@UsherRoutes()
@UseFilters(ProblemFilter)
@UseGuards(AccountGuard, KNOWN_QUERY)
export class AccountController {
  constructor(private readonly account: ClientAccount) {}

  @Get()
  show(@CurrentClient() client: Client): Promise<AccountView> {
    return this.account.show(client.id);
  }

  @Put('notify-url')
  setNotifyUrl(
    @CurrentClient() client: Client,
    @Body() body: unknown,
    @RequestActor() actor: Actor,
  ): Promise<ChangedNotifyUrl> {
    return this.account.setNotifyUrl(client, body, actor);
  }

  @Post('secret/rotate')
  @HttpCode(200)
  rotate(
    @CurrentClient() client: Client,
    @Body() body: unknown,
    @RequestActor() actor: Actor,
    @Headers('idempotency-key') idempotencyKey?: string,
  ): Promise<NewSecret> {
    validated(NoFields, body ?? {});
    return this.account.rotateSecret(client.id, idempotencyKey, actor);
  }

  /** Only with the new secret, so that a caller who does not have it is not locked out. */
  @Post('secret/finish')
  @HttpCode(200)
  finish(
    @CurrentClient() client: Client,
    @Body() body: unknown,
    @RequestActor() actor: Actor,
    @Headers('authorization') authorization: string,
  ): Promise<AccountView> {
    validated(NoFields, body ?? {});
    const presented = parseBasicHeader(authorization).map(({ secret }) => secret);
    return this.account.finishRotation(client.id, presented, actor);
  }
}
