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

/** The guards and what they need. It comes with UsherModule, for applications that serve no token endpoints too. */
@Module({
  imports: [PassportModule],
  providers: [BasicStrategy, BasicGuard, FailureLimit, ClientAuthentication, AccessTokens, BearerGuard],
  // Nest instantiates a guard in each module that uses it, so that module needs the guard's dependencies.
  exports: [BasicGuard, FailureLimit, ClientAuthentication, AccessTokens, BearerGuard],
})
export class AuthenticationModule {}

/** The routes `POST /auth/token`, `/auth/refresh`, `/auth/revoke` and `/auth/introspect`. */
@Module({
  controllers: [TokenController],
  providers: [TokenEvents, TokenLimit, TokenService, RevocationService, IntrospectionService],
  exports: [TokenEvents, TokenService],
})
export class AuthModule {}
