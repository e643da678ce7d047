import { type CanActivate, type ExecutionContext, Inject, Injectable } from '@nestjs/common';
import { hasCredentials } from '../../http/basic-credentials.js';
import { unauthorized } from '../../http/problem.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../../usher.options.js';

/** Requires INTERNAL_USER and INTERNAL_PASSWORD over HTTP Basic, for an order service in another process. */
@Injectable()
export class InternalGuard implements CanActivate {
  constructor(@Inject(USHER_OPTIONS) private readonly options: ResolvedOptions) {}

  canActivate(context: ExecutionContext): boolean {
    const { headers } = context.switchToHttp().getRequest<{ headers: { authorization?: string } }>();
    if (hasCredentials(headers.authorization, this.options.internal)) return true;
    throw unauthorized(
      'send INTERNAL_USER and INTERNAL_PASSWORD by HTTP Basic',
      'Basic realm="usher internal", charset="UTF-8"',
    );
  }
}
