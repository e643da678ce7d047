import { type CanActivate, type ExecutionContext, Inject, Injectable } from '@nestjs/common';
import type { HttpRequest } from '../../http/exchange.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';
import { FixedCredentials } from './fixed-credentials.js';

/** Requires INTERNAL_USER and INTERNAL_PASSWORD over HTTP Basic, for an order service in another process. */
@Injectable()
export class InternalGuard implements CanActivate {
  constructor(
    private readonly credentials: FixedCredentials,
    @Inject(USHER_OPTIONS) private readonly options: ResolvedOptions,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<HttpRequest>();
    await this.credentials.check(request, 'internal', this.options.internal);
    return true;
  }
}
