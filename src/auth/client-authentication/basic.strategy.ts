import { type ExecutionContext, Injectable } from '@nestjs/common';
import { PassportStrategy, AuthGuard } from '@nestjs/passport';
import type { StrategyCreatedStatic } from 'passport';
import { BasicStrategy as PassportBasicStrategy } from 'passport-http';
import { ClientSecrets } from '../../clients/secrets/client-secrets.js';
import type { AuthenticatedClient } from '../../clients/secrets/remembered-clients.js';
import { parseBasicHeader } from '../../http/basic-credentials.js';
import type { HttpRequest } from '../../http/exchange.js';
import { OAuthError } from '../../http/oauth-error.js';

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

  override authenticate(request: { headers: { authorization?: string } }): void {
    // Passport replaces these callbacks for each request, so read them before anything asynchronous.
    const { success, fail, error } = this as object as StrategyCreatedStatic;
    this.identify(request.headers.authorization).then(
      (found) => (found ? success(found.client, found) : fail(401)),
      error,
    );
  }

  /** Required by PassportStrategy. Passport itself does not call it, because authenticate() is overridden. */
  validate(id: string, secret: string): Promise<AuthenticatedClient | null> {
    return this.secrets.authenticate(id, secret);
  }

  private async identify(header: string | undefined): Promise<AuthenticatedClient | null> {
    for (const { id, secret } of parseBasicHeader(header)) {
      const found = await this.validate(id, secret);
      if (found) return found;
    }
    return null;
  }
}

/** Runs {@link BasicStrategy} by passport. */
@Injectable()
export class StrategyGuard extends AuthGuard() {
  constructor(strategy: BasicStrategy) {
    // Passport finds a strategy name process-wide, so two applications would share it. Pass the instance instead.
    super({ defaultStrategy: strategy });
  }

  override handleRequest<T>(
    error: unknown,
    client: T | false | null,
    info: { rememberedSecret: string | null } | undefined,
    context: ExecutionContext,
  ): T {
    if (error) throw error;
    const request = context.switchToHttp().getRequest<HttpRequest & Partial<AuthenticatedClient>>();
    if (!client) throw new OAuthError('invalid_client', refusalOf(request.headers.authorization));
    request.rememberedSecret = info?.rememberedSecret ?? null;
    return client;
  }
}

const HOW = 'send Authorization: Basic <BASE64(client_id:client_secret)>, with curl: -u client_id:client_secret';

/** Says how to send credentials if there are none. It reveals nothing: it depends on the request alone. */
function refusalOf(header: string | undefined): string {
  if (header === undefined) return `the client credentials are missing; ${HOW}`;
  if (/^bearer\b/i.test(header)) return `this path takes the client id and secret, not a token; ${HOW}`;
  if (parseBasicHeader(header).length === 0) return `the Authorization header has no client id and secret; ${HOW}`;
  return 'the client id or the client secret is invalid';
}
