import { Module } from '@nestjs/common';
import { PassportModule } from '@nestjs/passport';
import { TypeOrmModule } from '@nestjs/typeorm';
import { Client } from '../clients/client.entity.js';
import { ClientsModule } from '../clients/clients.module.js';
import { LimitsModule } from '../limits/limits.module.js';
import { AccessTokens } from './bearer/access-tokens.js';
import { BearerGuard } from './bearer/bearer.guard.js';
import { BasicGuard, BasicStrategy } from './client-authentication/basic.strategy.js';
import { ClientGate } from './client-authentication/client-gate.js';
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
const GATE = [BasicStrategy, BasicGuard, FailureLimit, ClientGate];
const TOKENS = [TokenEvents, TokenLimit, TokenService, RevocationService, IntrospectionService];

/** What guards need to tell clients apart. */
@Module({
  imports: [PassportModule, ClientsModule, LimitsModule, ENTITIES],
  providers: [...GATE, ...TOKENS, AccessTokens, BearerGuard],
  // A module that uses BearerGuard builds it itself and needs what it injects.
  exports: [BasicGuard, BearerGuard, ...TOKENS, AccessTokens, ENTITIES],
})
export class AuthModule {}

/** The token endpoints; they count on the hook of http-server.ts, which authenticates before a body is read. */
@Module({ imports: [AuthModule], controllers: [TokenController, TokenStatusController, MetadataController] })
export class AuthRoutesModule {}
