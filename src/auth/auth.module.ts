import { Inject } from '@nestjs/common';
import { FailureCounts } from '../audit/audit.module.js';
import { type ResolvedOptions, USHER_OPTIONS } from '../usher.options.js';
import { AuthorizationResponses, Authorizations } from './authorize/authorizations.js';
import { AuthorizationSite } from './authorize/authorization-site.js';
import { AuthorizeController, ConnectionsController } from './authorize/authorize.controller.js';
import { CodeExchange } from './authorize/code-exchange.js';
import { ConnectedApplications } from './authorize/connected-applications.js';
import { AccessTokens } from './bearer/access-tokens.js';
import { BearerGuard } from './bearer/bearer.guard.js';
import { BasicGuard, BasicStrategy, ClientAuthentication } from './client-authentication/client-authentication.js';
import { FixedCredentials } from './client-authentication/internal.guard.js';
import { AuthPaths } from './metadata/auth-paths.js';
import { IssuedTokens } from './tokens/issued-tokens.js';
import { TokenEvents, TokenService } from './tokens/token.service.js';
import { TokenController } from './tokens/token.controller.js';
import { TokenStore } from './tokens/store/token.store.js';
import { UsherNamedModule } from '../telemetry/usher-named.js';

const SERVICES = [
  FailureCounts,
  FixedCredentials,
  BasicStrategy,
  ClientAuthentication,
  BasicGuard,
  AccessTokens,
  BearerGuard,
  TokenEvents,
  TokenStore,
  TokenService,
  IssuedTokens,
  AuthPaths,
  AuthorizationSite,
  Authorizations,
  AuthorizationResponses,
  CodeExchange,
  ConnectedApplications,
];

/** Guards and token services without any route. It comes with UsherModule. */
@UsherNamedModule({
  providers: SERVICES,
  // Nest instantiates a guard in each module that uses it, so that module needs the guard's dependencies.
  exports: SERVICES,
})
export class AuthenticationModule {}

/** The routes `POST /auth/token`, `/auth/refresh`, `/auth/revoke` and `/auth/introspect`. */
@UsherNamedModule({ controllers: [TokenController] })
export class AuthModule {
  /** USHER_OPTIONS is injected so that, without UsherModule, the start-up error says what to import. */
  constructor(@Inject(USHER_OPTIONS) _: ResolvedOptions, paths: AuthPaths) {
    paths.module = AuthModule;
  }
}

/**
 * The pages of the authorisation-code grant: `GET /auth/authorize`, its consent page, and `/auth/connections`. They need a
 * `publicUrl` with https.
 */
@UsherNamedModule({ controllers: [AuthorizeController, ConnectionsController] })
export class AuthorizationRoutesModule {
  constructor(site: AuthorizationSite) {
    site.addRoutes();
  }
}
