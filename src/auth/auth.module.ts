import { Module } from '@nestjs/common';
import { PassportModule } from '@nestjs/passport';
import { TypeOrmModule } from '@nestjs/typeorm';
import { Client } from '../clients/client.entity.js';
import { ClientsModule } from '../clients/clients.module.js';
import { LimitsModule } from '../limits/limits.module.js';
import { AccessTokens } from './bearer/access-tokens.js';
import { BearerGuard } from './bearer/bearer.guard.js';
import { BasicGuard, BasicStrategy } from './client-authentication/basic.strategy.js';
import { ClientAuthentication } from './client-authentication/client-authentication.js';
import { FailureLimit } from './client-authentication/failure-limit.js';
import { MetadataController } from './metadata/metadata.controller.js';
import { AccessToken, Grant } from './tokens/grant.entity.js';
import { IntrospectionService } from './tokens/introspection.service.js';
import { RevocationService } from './tokens/revocation.service.js';
import { TokenEvents } from './tokens/token-events.js';
import { TokenLimit } from './tokens/token-limit.js';
import { TokenStatusController, TokenController } from './tokens/token.controller.js';
import { TokenService } from './tokens/token.service.js';

const ENTITIES = TypeOrmModule.forFeature([Grant, AccessToken, Client]);
const CLIENT_AUTHENTICATION = [BasicStrategy, BasicGuard, FailureLimit, ClientAuthentication];
const TOKENS = [TokenEvents, TokenLimit, TokenService, RevocationService, IntrospectionService];

/** Client authentication, token services and the bearer guard, without any routes. */
@Module({
  imports: [PassportModule, ClientsModule, LimitsModule, ENTITIES],
  providers: [...CLIENT_AUTHENTICATION, ...TOKENS, AccessTokens, BearerGuard],
  // Nest instantiates BearerGuard in each module that uses it, so that module needs the guard's dependencies.
  exports: [BasicGuard, BearerGuard, ...TOKENS, AccessTokens, ENTITIES],
})
export class AuthModule {}

/** The token endpoints. A hook in http-server.ts authenticates the client before the body is read. */
@Module({ imports: [AuthModule], controllers: [TokenController, TokenStatusController, MetadataController] })
export class AuthRoutesModule {}
