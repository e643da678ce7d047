import { Injectable } from '@nestjs/common';
import { PassportStrategy, AuthGuard } from '@nestjs/passport';
import type { StrategyCreatedStatic } from 'passport';
import { BasicStrategy as PassportBasicStrategy } from 'passport-http';
import type { Client } from '../../clients/client.entity.js';
import { ClientSecrets } from '../../clients/secrets/client-secrets.js';
import { parseBasicHeader } from '../../http/basic-credentials.js';
import { OAuthError } from '../../http/oauth-error.js';

/** `basic` is left to a strategy of the application that Usher is part of. */
const NAME = 'usher-basic';

/**
 * HTTP Basic for API clients (specification 5.2). The header is parsed here: passport-http splits the pair at every
 * colon, so that `secret:anything` would pass, and takes any scheme that contains "basic".
 */
@Injectable()
export class BasicStrategy extends PassportStrategy(PassportBasicStrategy, NAME) {
  constructor(private readonly secrets: ClientSecrets) {
    super();
  }

  override authenticate(request: { headers: { authorization?: string } }): void {
    // Passport writes these into the strategy for each request, the next of which may come before this one's answer.
    const { success, fail, error } = this as object as StrategyCreatedStatic;
    this.identify(request.headers.authorization).then((client) => (client ? success(client) : fail(401)), error);
  }

  /** What passport-http would call with its own reading of the header; every request comes through authenticate(). */
  validate(id: string, secret: string): Promise<Client | null> {
    return this.secrets.authenticate(id, secret);
  }

  private async identify(header: string | undefined): Promise<Client | null> {
    for (const { id, secret } of parseBasicHeader(header)) {
      const client = await this.validate(id, secret);
      if (client) return client;
    }
    return null;
  }
}

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
