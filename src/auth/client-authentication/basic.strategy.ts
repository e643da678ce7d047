import { Injectable } from '@nestjs/common';
import { PassportStrategy } from '@nestjs/passport';
import type { StrategyCreatedStatic } from 'passport';
import { BasicStrategy as PassportBasicStrategy } from 'passport-http';
import { ClientSecrets } from '../../clients/secrets/client-secrets.js';
import type { AuthenticatedClient } from '../../clients/secrets/remembered-clients.js';
import { type BasicCredentials, parseBasicHeader } from '../../http/basic-credentials.js';

/** Not `basic`: an embedding application may register its own strategy with that name. */
const NAME = 'usher-basic';

/**
 * HTTP Basic for API clients (specification 5.2). passport-http is not used to parse the header: it ignores text after
 * a second colon, so it would accept `secret:anything`, and it accepts any scheme that contains "basic".
 */
@Injectable()
export class BasicStrategy extends PassportStrategy(PassportBasicStrategy, NAME) {
  constructor(private readonly secrets: ClientSecrets) {
    super();
  }

  /**
   * The client of the first credentials that are valid; null if none are. Usher's guard calls it without passport's middleware,
   * which would keep each request in memory until a full garbage collection: V8 allocates the functions that it assigns to
   * properties in the old space.
   */
  async identify(credentials: BasicCredentials[]): Promise<AuthenticatedClient | null> {
    for (const { id, secret } of credentials) {
      const found = await this.validate(id, secret);
      if (found) return found;
    }
    return null;
  }

  /** For passport's middleware, such as that of `AuthGuard('usher-basic')` in an application. */
  override authenticate({ headers }: { headers: { authorization?: string } }): void {
    // The middleware replaces these actions for each request, so read them before anything asynchronous.
    const { success, fail, error } = this as object as StrategyCreatedStatic;
    this.identify(parseBasicHeader(headers.authorization)).then(
      (found) => (found ? success(found.client, found) : fail(401)),
      error,
    );
  }

  /** Required by PassportStrategy. Passport itself does not call it, because authenticate() is overridden. */
  validate(id: string, secret: string): Promise<AuthenticatedClient | null> {
    return this.secrets.authenticate(id, secret);
  }
}
