import { Body, Controller, HttpCode, Post, Req } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import type { Client } from '../../clients/client.entity.js';
import type { Parameters } from '../../http/oauth-parameters.js';
import { OAUTH_ROUTE, INTERNAL_OAUTH_ROUTE } from '../../http/oauth-route.js';
import { IntrospectionService } from './introspection.service.js';
import { RevocationService } from './revocation.service.js';
import type { TokenResponse, Introspection } from './token.schemas.js';
import { TokenService } from './token.service.js';

/** A request whose client was authenticated by ClientAuthentication. */
export interface ClientRequest {
  user: Client;
}

@Controller('auth')
export class TokenController {
  constructor(private readonly tokens: TokenService) {}

  /** Specification 4.1. */
  @Post('token')
  @HttpCode(200)
  @RouteConfig(OAUTH_ROUTE)
  token(@Req() { user }: ClientRequest, @Body() parameters: Parameters): Promise<TokenResponse> {
    return this.tokens.token(user, parameters);
  }

  /** Specification 4.2. */
  @Post('refresh')
  @HttpCode(200)
  @RouteConfig(OAUTH_ROUTE)
  refresh(@Req() { user }: ClientRequest, @Body() parameters: Parameters): Promise<TokenResponse> {
    return this.tokens.refresh(user, parameters);
  }
}

@Controller('auth')
export class TokenStatusController {
  constructor(
    private readonly revocations: RevocationService,
    private readonly introspections: IntrospectionService,
  ) {}

  /** RFC 7009: an empty 200, also for an unknown token. */
  @Post('revoke')
  @HttpCode(200)
  @RouteConfig(OAUTH_ROUTE)
  revoke(@Req() { user }: { user: Client }, @Body() parameters: Parameters): Promise<void> {
    return this.revocations.revoke(user, parameters);
  }

  /** RFC 7662. */
  @Post('introspect')
  @HttpCode(200)
  @RouteConfig(INTERNAL_OAUTH_ROUTE)
  introspect(@Req() { user }: { user: Client | null }, @Body() parameters: Parameters): Promise<Introspection> {
    return this.introspections.introspect(user, parameters);
  }
}
