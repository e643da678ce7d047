import {
  Body,
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  Headers,
  HttpCode,
  Injectable,
  Post,
  Put,
  Req,
  Res,
  UseFilters,
  UseGuards,
} from '@nestjs/common';
import { z } from 'zod';
import { addressOf, type HttpResponse, RequestActor, setHeaders } from '../http/exchange.js';
import { CurrentClient } from '../auth/bearer/bearer.guard.js';
import type { Client } from '../clients/client.entity.js';
import { parseBasicHeader } from '../http/basic-credentials.js';
import { ProblemFilter } from '../http/error-response.js';
import { NO_STORE, UsherRoutes } from '../http/oauth-route.js';
import { KNOWN_QUERY, Problem, validated } from '../http/problem.js';
import type { Actor } from '../values/actor.js';
import type { AccountView, ChangedNotifyUrl, NewSecret } from './account-view.js';
import { ClientAccount } from './client-account.js';
import { FailureCounts } from '../audit/audit.module.js';
import { ClientAuthentication, type OAuthRequest } from '../auth/client-authentication/client-authentication.js';
import { WebhookModule } from '../webhooks/webhook.module.js';
import { UsherNamedModule } from '../telemetry/usher-named.js';

/**
 * Requires the client id and secret, never an access token: a leaked token must not be able to take the account over.
 * No response is stored by a cache. The database authenticates every request, because a secret that has just been replaced
 * must not replace the new one.
 */
@Injectable()
class AccountGuard implements CanActivate {
  static readonly security = 'basic';

  constructor(
    private readonly clients: ClientAuthentication,
    private readonly failures: FailureCounts,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const http = context.switchToHttp();
    const [request, response] = [http.getRequest<OAuthRequest>(), http.getResponse<HttpResponse>()];
    setHeaders(response, NO_STORE);
    await this.clients.authenticateElsewhere(request, response, true).catch((error: unknown) => {
      const status = error instanceof Problem ? error.getStatus() : 500;
      if (status === 401 || status === 429)
        this.failures.countClient(request.claimedClient, addressOf(request), status === 429);
      throw error;
    });
    return true;
  }
}

const NoFields = z.strictObject({});

@Controller('client')
@UsherRoutes()
@UseFilters(ProblemFilter)
@UseGuards(AccountGuard, KNOWN_QUERY)
export class AccountController {
  constructor(
    private readonly account: ClientAccount,
    private readonly clients: ClientAuthentication,
  ) {}

  @Get()
  show(@CurrentClient() client: Client): Promise<AccountView> {
    return this.account.show(client.id);
  }

  @Put('notify-url')
  setNotifyUrl(
    @CurrentClient() client: Client,
    @Body() body: unknown,
    @RequestActor() actor: Actor,
    @Req() request: OAuthRequest,
    @Res({ passthrough: true }) response: HttpResponse,
  ): Promise<ChangedNotifyUrl> {
    const checkAgain = () => this.clients.authenticateElsewhere(request, response, true);
    return this.account.setNotifyUrl(client, body, actor, checkAgain);
  }

  @Post('secret/rotate')
  @HttpCode(200)
  rotate(
    @CurrentClient() client: Client,
    @Body() body: unknown,
    @RequestActor() actor: Actor,
    @Req() { secretId }: OAuthRequest,
    @Headers('idempotency-key') idempotencyKey?: string,
  ): Promise<NewSecret> {
    return this.account.rotateSecret(client.id, idempotencyKey, actor, body ?? {}, secretId);
  }

  /** Requires the new secret, so that a caller who does not have it is not locked out. */
  @Post('secret/finish')
  @HttpCode(200)
  finish(
    @CurrentClient() client: Client,
    @Body() body: unknown,
    @RequestActor() actor: Actor,
    @Req() { headers, secretId }: OAuthRequest,
  ): Promise<AccountView> {
    validated(NoFields, body ?? {});
    const presented = parseBasicHeader(headers.authorization).map(({ secret }) => secret);
    return this.account.finishRotation(client.id, presented, actor, secretId);
  }
}

/** {@link ClientAccount} without routes. */
@UsherNamedModule({ imports: [WebhookModule], providers: [ClientAccount], exports: [ClientAccount] })
export class AccountModule {}

/**
 * The routes with which a client reads and changes itself: `GET /client`, `PUT /client/notify-url`,
 * `POST /client/secret/rotate` and `POST /client/secret/finish`. They take the client's id and secret by HTTP Basic.
 */
@UsherNamedModule({ imports: [AccountModule], controllers: [AccountController], providers: [AccountGuard] })
export class ClientRoutesModule {}
