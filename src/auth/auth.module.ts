import { Module } from '@nestjs/common';
import { PassportModule } from '@nestjs/passport';
import { AccessTokens } from './bearer/access-tokens.js';
import { BearerGuard } from './bearer/bearer.guard.js';
import { BasicGuard, BasicStrategy } from './client-authentication/basic.strategy.js';
import { ClientAuthentication } from './client-authentication/client-authentication.js';
import { FailureLimit } from './client-authentication/failure-limit.js';
import { IntrospectionService } from './tokens/introspection.service.js';
import { RevocationService } from './tokens/revocation.service.js';
import { TokenEvents } from './tokens/token-events.js';
import { TokenLimit } from './tokens/token-limit.js';
import { TokenController } from './tokens/token.controller.js';
import { TokenService } from './tokens/token.service.js';

const GUARDS = [BasicStrategy, BasicGuard, FailureLimit, ClientAuthentication, AccessTokens, BearerGuard];
const TOKENS = [TokenEvents, TokenLimit, TokenService, RevocationService, IntrospectionService];

/** Guards and token services without any route. It comes with UsherModule. */
@Module({
  imports: [PassportModule],
  providers: [...GUARDS, ...TOKENS],
  // Nest instantiates a guard in each module that uses it, so that module needs the guard's dependencies.
  exports: [...GUARDS, ...TOKENS],
})
export class AuthenticationModule {}

/** The routes `POST /auth/token`, `/auth/refresh`, `/auth/revoke` and `/auth/introspect`. */
@Module({ controllers: [TokenController] })
export class AuthModule {}
