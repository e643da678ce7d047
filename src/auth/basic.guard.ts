import { Injectable } from '@nestjs/common';
import { AuthGuard } from '@nestjs/passport';
import { OAuthError } from '../core/oauth-error.js';
import { BasicStrategy } from './basic.strategy.js';

/** Lets a request through when the Basic strategy knows its client. */
@Injectable()
export class BasicGuard extends AuthGuard() {
  constructor(strategy: BasicStrategy) {
    // Itself: by a name Passport finds the strategy of whichever application of the process took it last.
    super({ defaultStrategy: strategy });
  }

  override handleRequest<T>(error: unknown, client: T | false | null): T {
    if (error) throw error;
    if (!client) throw new OAuthError('invalid_client', 'the client id or the client secret is not right');
    return client;
  }
}
