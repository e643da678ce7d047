import { type CanActivate, type ExecutionContext, Inject, Injectable } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import { FailureCounts } from '../audit/failure-counts.js';
import { addressOf, type HttpResponse, setHeaders } from '../http/exchange.js';
import { BasicGuard, type OAuthRequest } from '../auth/client-authentication/client-authentication.js';
import { ClientSecrets } from '../clients/secrets/client-secrets.js';
import { USHER_DATA_SOURCE } from '../database/data-source.js';
import { BASIC_CHALLENGE } from '../http/error-response.js';
import { INVALID_CREDENTIALS } from '../http/basic-credentials.js';
import { NO_STORE } from '../http/oauth-route.js';
import { Problem, unauthorized } from '../http/problem.js';

/**
 * Requires the client id and secret, never an access token: a leaked token must not be able to take the account over. No
 * response is stored by a cache. What was remembered of an earlier request is checked again, because a secret that was
 * replaced a moment ago must not replace the new one.
 */
@Injectable()
export class AccountGuard implements CanActivate {
  static readonly security = 'basic';

  constructor(
    private readonly basic: BasicGuard,
    private readonly secrets: ClientSecrets,
    private readonly failures: FailureCounts,
    @Inject(USHER_DATA_SOURCE) private readonly dataSource: DataSource,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const http = context.switchToHttp();
    const request = http.getRequest<OAuthRequest>();
    setHeaders(http.getResponse<HttpResponse>(), NO_STORE);
    await this.basic.canActivate(context).catch((error: unknown) => {
      this.countFailure(request, error);
      throw error;
    });
    await this.checkRemembered(request);
    return true;
  }

  private async checkRemembered({ user, rememberedSecret = null }: OAuthRequest): Promise<void> {
    if (!user) throw INVALID();
    const requester = { clientId: user.id, generation: user.tokenGeneration, rememberedSecret };
    if (await this.secrets.isStillValid(this.dataSource.manager, requester)) return;
    this.secrets.forget(user.id);
    throw INVALID();
  }

  private countFailure(request: OAuthRequest, error: unknown): void {
    const status = error instanceof Problem ? error.getStatus() : 500;
    if (status !== 401 && status !== 429) return;
    this.failures.count({
      action: 'client.authentication-failed',
      subject: request.claimedClient === undefined ? null : `client:${request.claimedClient}`,
      address: addressOf(request),
      isBlocked: status === 429,
    });
  }
}

const INVALID = (): Problem => unauthorized(INVALID_CREDENTIALS, BASIC_CHALLENGE);
